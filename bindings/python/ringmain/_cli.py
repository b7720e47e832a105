"""The command `ringmain`: the program that the wheel carries."""

import os
import sys

from ._paths import program


def main() -> None:
    try:
        path = program()
        os.execv(path, ["ringmain", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"ringmain: {error}")
