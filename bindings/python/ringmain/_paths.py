"""Where are the files that the wheel carries?"""

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def _carried(path: Path, what: str) -> str:
    if not path.exists():
        raise FileNotFoundError(f"this copy of ringmain carries no {what} ({path} is not there): it was built for "
                                "Python only, or not installed by pip; use the one of the build tree or of ./dev install")
    return str(path)


def get_include() -> str:
    """The folder for a C or C++ compiler's -I."""
    return _carried(_HERE / "include", "headers")


def cmake_prefix() -> str:
    """What CMAKE_PREFIX_PATH needs for find_package(ringmain)."""
    return _carried(_HERE / "lib" / "cmake", "CMake package").removesuffix("/lib/cmake")


def program() -> str:
    """The ringmain program."""
    return _carried(_HERE / "bin" / "ringmain", "program")
