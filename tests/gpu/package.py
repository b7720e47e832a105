"""Can this interpreter build ringmain's Python package for its PyTorch? Prints why not, and ends with 1, or with 0."""

import importlib.util
import sys
import sysconfig
from pathlib import Path


def why_not():
    if sys.version_info < (3, 11):
        return f"{sys.executable} is Python {sys.version.split()[0]}, and ringmain's package needs 3.11: name another with --python"
    for module in ("torch", "numpy", "nanobind"):
        if importlib.util.find_spec(module) is None:
            return f"{sys.executable} has no {module}, which ringmain's package is built or tested with: install it there, or name another with --python"
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        return f"{sys.executable} has no Python.h (Debian: python3-dev), which ringmain's package is built with"
    return ""


if __name__ == "__main__":
    print(why_not(), end="")
    sys.exit(1 if why_not() else 0)
