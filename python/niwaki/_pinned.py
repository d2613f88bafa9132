"""Packages whose inside a module stands on: the versions that the tests ran with, and no others."""

from __future__ import annotations

import importlib.metadata


def pinned(module: str, package: str, tested: tuple[str, ...]) -> None:
    """Raises ImportError with the mend unless a tested version of the package is installed."""
    mend = f"pip install {package}=={tested[-1]}"
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(f"{module} needs {package}, which is not installed: {mend}") from None
    if found not in tested:
        raise ImportError(
            f"{module} stands on the inside of {package} and was tested with {', '.join(tested)}; found {found}: {mend}"
        )
