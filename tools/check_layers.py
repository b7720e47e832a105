#!/usr/bin/env python3
"""Does every file include only its own room and the rooms below it?

engine <- bus <- events <- c <- adapters <- cli, python, examples, bench, tests. Adapters do not include each other:
what several of them need lies in events/. Includes of the project carry its
name, from the root: "ringmain/bus/channel.hpp". Memory orders are named in engine/ only, and where it is tested and
measured against others.
"""

import re
import sys

import tree

RANKS = {"engine": 0, "bus": 1, "events": 2, "c": 3, "adapters": 4,
         "cli": 5, "python": 5, "examples": 5, "bench": 5, "tests": 5}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"(?P<quoted>[^"]+)"|<(?P<angled>[^>]+)>)')
ORDER = re.compile(r"\bmemory_order\w*")
ORDER_ROOMS = ("engine", "tests", "bench")
# The models are compiled alone, by checkers that know no include path of ours.
BY_BARE_NAME = ("tests/model/",)


def adapter_of(parts):
    """The adapter that a file belongs to: sources/cuda, sinks/json_lines; None for what serves them all."""
    if len(parts) < 3 or parts[1] not in ("sources", "sinks", "bridges"):
        return None
    return "/".join((parts[1], parts[2].split(".")[0]))


def include_fault(path, included, root):
    """What is wrong with this include of one of our headers, or None."""
    target = included.removeprefix("ringmain/")
    parts, own = target.split("/"), path.parts
    if parts[0] not in RANKS or not (root / target).is_file():
        return f"there is no {target} in the tree"
    if parts[0] != own[0]:
        if RANKS[parts[0]] < RANKS[own[0]] or own[0] == "tests":
            return None
        return f"{own[0]}/ must not include {parts[0]}/: a room includes itself and the rooms below it"
    if own[0] == "adapters" and adapter_of(own) and adapter_of(parts) not in (None, adapter_of(own)):
        return "adapters do not include each other; what several of them need lies in events/"
    return None


def faults_of(path, text, root):
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        included = found and (found["quoted"] or found["angled"])
        fault = None
        if included and included.startswith("ringmain/"):
            fault = include_fault(path, included, root)
        elif found and found["quoted"] and not str(path).startswith(BY_BARE_NAME):
            fault = f'write "ringmain/…/{included}", from the root, or <{included}> if it is not ours'
        elif ORDER.search(line.split("//")[0]) and path.parts[0] not in ORDER_ROOMS:
            fault = "memory orders live in engine/: use the default order here, or move the protocol there"
        if fault:
            yield f"{path}:{number}: {fault}"


def main():
    root = tree.root_argument(__doc__)
    paths = [path for path in tree.files(root, {".hpp", ".cpp", ".h", ".c", ".cc", ".cu"}) if path.parts[0] in RANKS]
    findings = []
    for path in paths:
        findings += faults_of(path, (root / path).read_text(encoding="utf-8"), root)
    return tree.tell(findings, len(paths))


if __name__ == "__main__":
    sys.exit(main())
