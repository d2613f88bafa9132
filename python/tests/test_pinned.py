"""Modules that stand on a package's inside refuse other versions with the mend."""

import importlib
import importlib.metadata
import sys

import pytest


def absent(name):
    raise importlib.metadata.PackageNotFoundError(name)


@pytest.mark.parametrize(("module", "package", "version"), [("trl", "trl", "1.16.0"), ("verl", "verl", "0.9.1")])
def test_other_versions_are_refused(monkeypatch, module, package, version):
    monkeypatch.delitem(sys.modules, f"niwaki.{module}", raising=False)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.1")
    with pytest.raises(ImportError, match=f"tested with {version}; found 0.1: pip install {package}=={version}"):
        importlib.import_module(f"niwaki.{module}")
    monkeypatch.setattr(importlib.metadata, "version", absent)
    with pytest.raises(ImportError, match=f"needs {package}, which is not installed: pip install {package}=="):
        importlib.import_module(f"niwaki.{module}")
