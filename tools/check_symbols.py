#!/usr/bin/env python3
"""Can the library be unloaded?

A single unique symbol (STB_GNU_UNIQUE: an inline variable or a template's thread_local or static in a public header)
silently turns dlclose of the library, and of every plugin that has the symbol, into nothing.

usage: check_symbols.py SHARED_LIBRARY
"""

import subprocess
import sys


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    run = subprocess.run(["nm", "-D", "-C", "--defined-only", sys.argv[1]], capture_output=True, text=True, check=False)
    symbols = [line.split(maxsplit=2) for line in run.stdout.splitlines()]
    symbols = [fields for fields in symbols if len(fields) == 3]
    if run.returncode or not symbols:
        print(f"{sys.argv[1]} has no symbols that nm can read. {run.stderr.strip()}")
        return 1
    unique = [name for _, kind, name in symbols if kind == "u"]
    for name in unique:
        print(f"{name} is a unique symbol: keep it out of the headers, or hide it in a .cpp file")
    print(f"{len(symbols)} symbols looked at, {len(unique)} found")
    return 1 if unique else 0


if __name__ == "__main__":
    sys.exit(main())
