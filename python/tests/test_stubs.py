"""The stub of the compiled half says what is there, no more and no less; mypy and its stubtest say more (python/test-extras.sh)."""

import ast
import inspect
from pathlib import Path

import niwaki
import pytest
from niwaki import _native

FOLDER = Path(niwaki.__file__).parent
STUB = ast.parse((FOLDER / "_native.pyi").read_text())


def names(body):
    """What a body of the stub defines in public: functions, classes, attributes."""
    found = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            found.add(node.target.id)
    return {name for name in found if not name.startswith("_")}


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_the_stub_has_every_name_of_the_module():
    assert names(STUB.body) == public(_native)


@pytest.mark.parametrize("node", [node for node in STUB.body if isinstance(node, ast.ClassDef)], ids=lambda node: node.name)
def test_the_stub_has_every_member_of_a_class(node):
    assert names(node.body) == public(getattr(_native, node.name))


@pytest.mark.parametrize("node", [node for node in STUB.body if isinstance(node, ast.FunctionDef)], ids=lambda node: node.name)
def test_the_stub_has_every_parameter_of_a_function(node):
    found = inspect.signature(getattr(_native, node.name)).parameters
    assert [argument.arg for argument in node.args.args] == list(found)


def test_the_package_is_marked_as_typed():
    assert (FOLDER / "py.typed").exists()
