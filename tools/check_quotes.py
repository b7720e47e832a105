#!/usr/bin/env python3
"""Does the README quote programs that are compiled?

Every block of C++ in README.md must stand, line for line, in one of examples/*.cpp, which are built and
run as tests. Exit codes: 0 they do, 1 one does not, 2 wrong use.
"""
import pathlib
import re
import sys


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: check_quotes.py SOURCE_ROOT", file=sys.stderr)
        return 2
    root = pathlib.Path(sys.argv[1])
    programs = {p.name: p.read_text() for p in sorted(root.glob("examples/*.cpp"))}
    blocks = re.findall(r"^```cpp\n(.*?)^```$", (root / "README.md").read_text(), re.M | re.S)
    lost = [b for b in blocks if not any(b in text for text in programs.values())]
    for block in lost:
        print(f"README.md quotes what no example holds; copy it anew:\n{block}")
    print(f"{len(blocks)} looked at, {len(lost)} found")
    return 1 if lost or not blocks else 0


if __name__ == "__main__":
    sys.exit(main())
