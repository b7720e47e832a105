#!/usr/bin/env python3
"""Do the pages at the root and in docs/ quote programs that are compiled?

Every block of C++ in them must stand, line for line, in one of the programs below examples/, which are built
and run as tests. Exit codes: 0 they do, 1 one does not, 2 wrong use.
"""
import pathlib
import re
import sys


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: check_quotes.py SOURCE_ROOT", file=sys.stderr)
        return 2
    root = pathlib.Path(sys.argv[1])
    programs = [p.read_text() for p in sorted(root.glob("examples/**/*.cpp"))]
    looked_at = 0
    lost = 0
    for page in [*sorted(root.glob("*.md")), *sorted(root.glob("docs/*.md"))]:
        for indent, block in re.findall(r"^( *)```cpp\n(.*?)^\1```$", page.read_text(), re.M | re.S):
            looked_at += 1
            block = re.sub(f"^{indent}", "", block, flags=re.M)  # in a numbered step
            if any(block in text for text in programs):
                continue
            lost += 1
            print(f"{page.relative_to(root)} quotes what no example holds; copy it anew:\n{block}")
    print(f"{looked_at} looked at, {lost} found")
    return 1 if lost or not looked_at else 0


if __name__ == "__main__":
    sys.exit(main())
