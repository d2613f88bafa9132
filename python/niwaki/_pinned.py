"""Packages whose inside a module stands on: which versions the tests ran with, and a warning beside them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import warnings


def pinned(module: str, package: str, oldest: str, newest: str, source: str | None = None) -> None:
    """Warns where a version other than those between the oldest and the newest tested one is installed.

    Raises ImportError with the mend where there is neither that nor a checkout on Python's path. `source`: the repository of a
    package that the index does not have.
    """
    mend = f"pip install {package}=={newest}" if source is None else f"pip install git+https://github.com/{source}@v{newest}"
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        if importlib.util.find_spec(package.replace("-", "_")) is None:
            raise ImportError(f"{module} needs {package}, which is not installed: {mend}") from None
        found = "a checkout without a version"
    if not _release(oldest) <= _release(found) <= _release(newest):
        tested = newest if oldest == newest else f"{oldest} to {newest}"
        warnings.warn(
            f"{module} stands on the inside of {package} and was tested with {tested}; found {found}: {mend}, or see that a run "
            "with correction='tempered:0' has the losses of one without",
            stacklevel=3,
        )


def _release(version: str) -> list[int]:
    """The numbers of a version, without zeros at the end and what marks it as local or not yet released."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    found = [int(part) for part in numbers.group().split(".")] if numbers else []
    while found and found[-1] == 0:
        found.pop()
    return found
