#!/usr/bin/env python3
"""Can the library be unloaded, and does each name that it shows say of which version it is?

A single unique symbol (STB_GNU_UNIQUE: an inline variable or a template's thread_local or static in a public header)
silently turns dlclose of the library, and of every plugin that has the symbol, into nothing. A name without a version, or a C++
name with the version of C's, would be taken from any version of the library (docs/adr/0036-versioned-symbols.md).

usage: check_symbols.py SHARED_LIBRARY [VERSION]     VERSION: that of the SONAME, such as 0.1; without it versions are not looked at
"""

import subprocess
import sys


def wrong_version(name, version):
    """A sentence on a name as nm shows it, 'ringmain::Bus::Bus()@@RINGMAIN_CXX_0.1', or nothing."""
    plain, _, shown = name.partition("@@")
    wanted = f"RINGMAIN_{version}" if plain.startswith("ringmain_") else f"RINGMAIN_CXX_{version}"
    return None if shown == wanted else f"{plain} has {f'the version {shown}' if shown else 'no version'}, and not {wanted}"


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    run = subprocess.run(["nm", "-D", "-C", "--defined-only", sys.argv[1]], capture_output=True, text=True, check=False)
    symbols = [line.split(maxsplit=2) for line in run.stdout.splitlines()]
    symbols = [fields for fields in symbols if len(fields) == 3 and fields[1] != "A"]  # A: the versions themselves
    if run.returncode or not symbols:
        print(f"{sys.argv[1]} has no symbols that nm can read. {run.stderr.strip()}")
        return 1
    found = [f"{name} is a unique symbol: keep it out of the headers, or hide it in a .cpp file" for _, kind, name in symbols
             if kind == "u"]
    if len(sys.argv) == 3:
        found += filter(None, (wrong_version(name, sys.argv[2]) for _, _, name in symbols))
    for sentence in found:
        print(sentence)
    print(f"{len(symbols)} symbols looked at, {len(found)} found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
