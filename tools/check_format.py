#!/usr/bin/env python3
"""Is every C++ file as clang-format 14 writes it with .clang-format?

Another version formats differently, so without version 14 the check says that it was skipped.
"""

import re
import shutil
import subprocess
import sys

import tree


def formatter():
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path and re.search(r"version 14\.", subprocess.run([path, "--version"], capture_output=True, text=True,
                                                              check=False).stdout):
            return path
    return None


def main():
    root = tree.root_argument(__doc__)
    program = formatter()
    if not program:
        print("skipped: clang-format 14 is not here; on Debian 12: apt-get install clang-format")
        return tree.SKIPPED
    paths = tree.files(root, {".hpp", ".cpp", ".h", ".c"})
    findings = []
    for path in paths:
        run = subprocess.run([program, "--style=file", "--dry-run", str(path)], cwd=root, capture_output=True,
                             text=True, check=False)
        first = re.search(r":(?P<line>\d+):\d+: ", run.stderr)
        if first or run.returncode:
            line = first["line"] if first else 1
            findings.append(f"{path}:{line}: not as the formatter writes it; run {program} -i {path}")
    return tree.tell(findings, len(paths))


if __name__ == "__main__":
    sys.exit(main())
