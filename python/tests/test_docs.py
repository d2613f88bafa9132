"""The examples of the pages and of the docstrings run as they are printed."""

import doctest
import importlib
import shutil
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "python"
# What a page or a module needs beside NumPy.
NEEDS = {"torch": ["torch"], "jax": ["jax"], "gym": ["gymnasium"], "train": ["torch", "gymnasium"]}
MODULES = ["advise", "correction", "gym", "jax", "oracle", "run", "shop", "stats", "torch"]


def need(name):
    for package in NEEDS.get(name, []):
        pytest.importorskip(package, reason=f"{package} is not installed; python/test-extras.sh runs this")
    if name == "policy" and shutil.which("niwaki") is None:
        pytest.skip("the command is not installed; python/test.sh runs this")


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_page(page):
    need(page.stem)
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert failed == 0
    # These show scripts, not sessions; the tests of their modules run what they say.
    assert tried > 0 or page.stem in ("README", "runs", "train", "trainers", "trl", "verl")


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    need(name)
    failed, tried = doctest.testmod(importlib.import_module(f"niwaki.{name}"))
    assert failed == 0 and tried > 0
