"""Modules that stand on a package's inside warn beside the tested versions, and say what to install where there is none."""

import importlib
import importlib.metadata
import importlib.util
import sys
import warnings

import pytest
from niwaki._pinned import pinned


def absent(name):
    raise importlib.metadata.PackageNotFoundError(name)


@pytest.mark.parametrize(
    "found, told",
    [("0.1", True), ("1.15.9", True), ("1.16", False), ("1.16.0", False), ("1.17.2", False), ("1.17.3", True), ("2.0.0.dev1", True)],
)
def test_versions_beside_the_tested_ones_are_told(monkeypatch, found, told):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: found)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pinned("niwaki.some", "some", "1.16", "1.17.2")
    said = f"niwaki.some stands on the inside of some and was tested with 1.16 to 1.17.2; found {found}: pip install some==1.17.2"
    assert [str(one.message).startswith(said) for one in caught] == [True] * told


@pytest.mark.parametrize(("module", "package"), [("trl", "trl"), ("verl", "verl")])
def test_other_versions_are_told_and_missing_ones_refused(monkeypatch, module, package):
    real = importlib.metadata.version
    monkeypatch.delitem(sys.modules, f"niwaki.{module}", raising=False)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: absent(name) if name == package else real(name))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=f"needs {package}, which is not installed: pip install {package}=="):
        importlib.import_module(f"niwaki.{module}")
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, f"niwaki.{module}", raising=False)
    pytest.importorskip(package, reason=f"{package} is not installed; python/test-extras.sh runs this")
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "99.0" if name == package else real(name))
    with pytest.warns(UserWarning, match=f"tested with .*; found 99.0: pip install {package}=="):
        importlib.import_module(f"niwaki.{module}")


def test_a_checkout_on_the_path_is_told(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", absent)
    with pytest.warns(UserWarning, match="found a checkout without a version"):
        pinned("niwaki.some", "json", "1.16", "1.17.2")
    with pytest.warns(UserWarning, match=r"pip install git\+https://github.com/a/json@v1.17.2"):
        pinned("niwaki.some", "json", "1.16", "1.17.2", source="a/json")
