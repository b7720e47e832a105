#!/usr/bin/env python3
"""Which modules of a room use each other in a circle?

A module is a header with its source. Modules that include each other, directly or by others, form a knot: none of them
can be read, built or tested without all. Each room has the size of the largest knot that it may have (LARGEST).
"""

import os
import re
import sys
from collections import defaultdict
from pathlib import Path

import check_layers
import tree

LARGEST = {"engine": 3, "events": 1, "bindings/c": 1, "adapters": 3, "bus": 3}
INCLUDE = re.compile(r'^\s*#\s*include\s*"(?P<path>[^"]+)"', re.M)


def module_of(path):
    return str(path.with_suffix(""))


def uses_of(room, root, paths):
    """Which modules of the room does each of its modules include?"""
    modules = {module_of(path) for path in paths}
    uses = defaultdict(set)
    for path in paths:
        for found in INCLUDE.finditer((root / path).read_text(encoding="utf-8")):
            for target in (found["path"], os.path.normpath(path.parent / found["path"])):
                used = module_of(Path(target))
                if used in modules and used != module_of(path):
                    uses[module_of(path)].add(used)
    return modules, uses


def reachable(start, uses):
    seen, todo = set(), [start]
    while todo:
        for used in uses[todo.pop()] - seen:
            seen.add(used)
            todo.append(used)
    return seen


def knots(modules, uses):
    reach = {module: reachable(module, uses) for module in modules}
    found = {frozenset(m for m in reach[module] if module in reach[m]) for module in modules if module in reach[module]}
    return sorted(found, key=lambda knot: (-len(knot), sorted(knot)))


def main():
    root = tree.root_argument(__doc__)
    paths = [path for path in tree.files(root, {".hpp", ".cpp"}) if check_layers.room_of(path) in LARGEST]
    findings = []
    for room, largest in LARGEST.items():
        modules, uses = uses_of(room, root, [path for path in paths if check_layers.room_of(path) == room])
        findings += [f"{room}/: {len(knot)} modules use each other in a circle, at most {largest} may: {' '.join(sorted(knot))}"
                     for knot in knots(modules, uses) if len(knot) > largest]
    return tree.tell(findings, len(paths))


if __name__ == "__main__":
    sys.exit(main())
