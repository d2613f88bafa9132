"""Every cell of the notebooks runs, top to bottom, in a fresh namespace, and shows what the notebook says that it shows.

`python python/tests/test_notebooks.py` runs them and writes what they show; the book prints it.
"""

import ast
import contextlib
import io
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "docs" / "python" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    notebook = json.loads(path.read_text())
    for number, (cell, outputs) in enumerate(played(notebook, path.name)):
        assert cell["outputs"] == outputs, f"{path.name}, cell {number}: run this file to write what the cell shows now"


def played(notebook, name):
    """The cells of code with what they show."""
    space = {"__name__": "__main__"}
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            yield cell, run("".join(cell["source"]), f"{name}, cell {number}", space)


def run(source, name, space):
    """Runs a cell; what it prints, and the value of its last line where that is an expression."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), space)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), space)
    outputs = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(True)})
    if value is not None:
        if hasattr(value, "_repr_html_"):
            data = {"text/html": value._repr_html_().splitlines(True)}
            assert data["text/html"][0].startswith("<")
        else:
            data = {"text/plain": repr(value).splitlines(True)}
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


if __name__ == "__main__":
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text())
        for cell, outputs in played(notebook, path.name):
            cell["outputs"] = outputs
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
