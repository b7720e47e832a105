#!/usr/bin/env python3
"""Is every source file short enough to be read in one go?"""

import sys

import tree

LINES_MAX = 400


def main():
    root = tree.root_argument(__doc__)
    paths = tree.files(root, {".hpp", ".cpp", ".h", ".c", ".py"})
    findings = []
    for path in paths:
        lines = len((root / path).read_text(encoding="utf-8").splitlines())
        if lines > LINES_MAX:
            findings.append(f"{path}:{LINES_MAX}: {lines} lines; split it, at most {LINES_MAX} are read in one go")
    return tree.tell(findings, len(paths))


if __name__ == "__main__":
    sys.exit(main())
