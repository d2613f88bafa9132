"""Every cell of the notebooks runs, top to bottom, in a fresh namespace; what a cell shows can be shown."""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "docs" / "python" / "notebooks"


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook(path):
    cells = json.loads(path.read_text())["cells"]
    assert not any(cell.get("outputs") for cell in cells), "a notebook is committed without its outputs"
    space = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            shown = run("".join(cell["source"]), f"{path.name}, cell {number}", space)
            for way in ("_repr_html_", "_repr_svg_"):
                assert not hasattr(shown, way) or getattr(shown, way)().startswith("<")


def run(source, name, space):
    """Runs a cell; the value of its last line, where that is an expression."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), space)
    return None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), space)
