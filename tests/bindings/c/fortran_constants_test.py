#!/usr/bin/env python3
"""Has each constant of the Fortran module the value that C has for it?

usage: fortran_constants_test.py ringmain.h ringmain.f90
"""

import re
import sys
from pathlib import Path

# Fortran does not tell upper case from lower: ringmain_name() has the plain name there.
RENAMED = {"RINGMAIN_NAME_FIELD": "RINGMAIN_NAME", "RINGMAIN_TEXT_FIELD": "RINGMAIN_TEXT"}
# What Fortran's calls do not take.
C_ONLY = re.compile(r"RINGMAIN_(DROP_NEWEST|DROP_OLDEST|BLOCK|TIME_OF_\w+|SHARED|ISOLATED|OWN_THREAD)")


def constants(path):
    text = re.sub(r"/\*.*?\*/|!.*", "", path.read_text(encoding="utf-8"), flags=re.S if path.suffix == ".h" else 0)
    found = re.findall(r"\b(RINGMAIN_[A-Z0-9_]+)\s*=\s*(-?\d+)", text)
    found += re.findall(r"#define\s+(RINGMAIN_C_ABI)\s+(\d+)", text)
    return {name: int(value) for name, value in found}


def main():
    c, fortran = (constants(Path(path)) for path in sys.argv[1:])
    here = {RENAMED.get(name, name): value for name, value in fortran.items()}
    wanted = {name: value for name, value in c.items() if not C_ONLY.fullmatch(name)}
    faults = [f"{name} is {here.get(name, 'missing')} in Fortran and {wanted.get(name, 'missing')} in C"
              for name in sorted(here.keys() | wanted.keys()) if here.get(name) != wanted.get(name)]
    print(*faults, f"{len(here)} constants compared", sep="\n")
    return 1 if faults or len(here) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
