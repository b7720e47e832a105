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
    findings = {}
    for some in (paths[i:i + 100] for i in range(0, len(paths), 100)):  # it starts slowly
        run = subprocess.run([program, "--style=file", "--dry-run", *map(str, some)], cwd=root, capture_output=True,
                             text=True, check=False)
        for path, line in re.findall(r"^(.+?):(\d+):\d+: ", run.stderr, re.M):
            findings.setdefault(path, f"{path}:{line}: not as the formatter writes it; run {program} -i {path}")
        if run.returncode and not findings:
            findings[some[0]] = f"{program} failed: {run.stderr.strip()}"
    return tree.tell(list(findings.values()), len(paths))


if __name__ == "__main__":
    sys.exit(main())
