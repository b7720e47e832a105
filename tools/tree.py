"""Which files make up the project, and how do the checks tell what they found?

Shared by the checks of this folder. A finding is a line "file:line: what is wrong and how to mend it".
"""

import os
import subprocess
import sys
from pathlib import Path

SKIPPED = 77  # the exit status by which ctest knows a test that could not run here


def files(root, suffixes=None):
    """The project's files below root, as sorted relative paths: what git would commit, else all but build/."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:  # a source archive
        names = []
        for folder, folders, found in os.walk(root):
            folders[:] = [name for name in folders if name not in ("build", ".git", "__pycache__")]
            names += [os.path.relpath(os.path.join(folder, name), root) for name in found]
    paths = (Path(name) for name in names)
    return sorted(path for path in set(paths)
                  if (suffixes is None or path.suffix in suffixes) and (Path(root) / path).is_file())


def root_argument(description):
    """The one argument of every check: the root of the tree."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(f"usage: {Path(sys.argv[0]).name} SOURCE_ROOT\n{description}", file=sys.stderr)
        sys.exit(2)
    root = Path(sys.argv[1])
    if not root.is_dir():
        print(f"{root} is not a folder.", file=sys.stderr)
        sys.exit(2)
    return root


def tell(findings, looked_at):
    """Prints the findings; returns the exit status. A check that looked at no file fails, because it shows nothing."""
    for finding in findings:
        print(finding)
    if not looked_at:
        print("There was nothing to look at: is this the source root?")
        return 1
    print(f"{looked_at} looked at, {len(findings)} found")
    return 1 if findings else 0
