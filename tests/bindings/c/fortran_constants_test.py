#!/usr/bin/env python3
"""Has the Fortran module each constant, with its value, and each function of ringmain.h and the headers that it includes?

usage: fortran_constants_test.py ringmain.h ringmain.f90
"""

import re
import sys
from pathlib import Path

# Fortran does not tell upper case from lower: ringmain_name() has the plain name there.
RENAMED = {"RINGMAIN_NAME_FIELD": "RINGMAIN_NAME", "RINGMAIN_TEXT_FIELD": "RINGMAIN_TEXT"}


def constants(path):
    text = re.sub(r"/\*.*?\*/|!.*", "", path.read_text(encoding="utf-8"), flags=re.S if path.suffix == ".h" else 0)
    found = re.findall(r"\b(RINGMAIN_[A-Z0-9_]+)\s*=\s*(-?\d+)", text)
    found += re.findall(r"#define\s+(RINGMAIN_C_ABI)\s+(\d+)", text)
    return {name: int(value) for name, value in found}


def functions_of_c(path):
    """Of the header and of those beside it that it includes."""
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r'#include "(\w+\.h)"', text):
        text += (path.parent / name).read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return set(re.findall(r"\b(ringmain_\w+)\s*\([^()]*\)\s*;", re.sub(r"typedef[^;{]*;", "", text)))


def functions_of_fortran(path):
    """The names in C of what it declares as bind(C)."""
    found = set()
    text = re.sub(r"&\s*\n\s*", "", re.sub(r"^\s*!.*\n", "", path.read_text(encoding="utf-8"), flags=re.M))
    for name, own in re.findall(r"(?:function|subroutine) (ringmain_\w+)\([^)]*\)\s*bind\(C(?:, name='(\w+)')?\)", text):
        found.add(own or name)
    return found


def main():
    header, module = map(Path, sys.argv[1:])
    c, fortran = constants(header), constants(module)
    here = {RENAMED.get(name, name): value for name, value in fortran.items()}
    faults = [f"{name} is {here.get(name, 'missing')} in Fortran and {c.get(name, 'missing')} in C"
              for name in sorted(here.keys() | c.keys()) if here.get(name) != c.get(name)]
    functions = functions_of_c(header)
    faults += [f"{name}() is missing in Fortran" for name in sorted(functions - functions_of_fortran(module))]
    print(*faults, f"{len(here)} constants and {len(functions)} functions compared", sep="\n")
    return 1 if faults or len(here) < 40 or len(functions) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
