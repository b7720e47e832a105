#!/usr/bin/env python3
"""Does every file include only its own room and the rooms below it, by a line that leads there in the tree?

engine <- bus <- events <- bindings/c <- adapters <- cli, bindings/python, examples, bench, tests. Sources and sinks do
not include each other: what several of them need lies in events/, adapters/formats/ or adapters/launch/. But sources may
include the installed headers of a few others (SHARED_SOURCES).

An installed header includes others of its kind, by relative lines: "../engine/publish/lane.hpp". All other files write the path
from the root: "engine/publish/lane.hpp". Examples are users' programs and write <ringmain/bus/bus.hpp>. Installed are
the places and files that cmake/PackagingAdapters.cmake names (PUBLIC). Memory orders are named in engine/ only, and where it is tested
and measured against others.
"""

import os
import re
import sys
from pathlib import Path

import tree

RANKS = {"engine": 0, "bus": 1, "events": 2, "bindings/c": 3, "adapters": 4,
         "cli": 5, "bindings/python": 5, "examples": 5, "bench": 5, "tests": 5}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"(?P<quoted>[^"]+)"|<(?P<angled>[^>]+)>)')
ORDER = re.compile(r"\bmemory_order\w*")
ORDER_ROOMS = ("engine", "tests", "bench")
WHOLE = ("engine", "bus", "events")  # all their headers are installed
PUBLIC = ("adapters", "adapters/formats", "adapters/sinks", "adapters/sources", "adapters/sources/compile")
C_INTERFACE = "bindings/c/ringmain.h"
# Installed one by one: their folders hold private headers, too.
PUBLIC_FILES = (C_INTERFACE, "bindings/c/ringmain_record.h", "bindings/c/ringmain_visit.h",
                *(f"adapters/sources/cuda/{name}.hpp" for name in
                  ("completions", "cuda_alarm_options", "cuda_alarms", "cuda_hazards", "cuda_options", "cuda_source",
                   "traced", "traced_call", "traced_types")),
                *(f"adapters/sources/collective/{name}.hpp" for name in
                  ("collective_arguments", "collective_current", "collective_hook", "collective_ledger", "collective_watchdog", "communicator",
                   "communicator_gate", "communicator_mark", "flight_recorder_hook", "loopback", "torchcomms", "torchcomms_arguments", "torchcomms_calls")),
                *(f"adapters/sources/nccl/{name}.hpp" for name in
                  ("nccl", "nccl_call", "nccl_calls", "nccl_functions", "nccl_options", "nccl_source", "nccl_types")))
# Sources whose installed headers other sources may include: they say one thing together (docs/adr/0021).
SHARED_SOURCES = ("sources/collective", "sources/cuda")
USERS = ("examples/", "tests/install/consumer/")
# The models are compiled alone, by checkers that do not know our include paths.
BY_BARE_NAME = ("tests/model/",)


def room_of(path):
    """The room of a file: its first folder, or the first two below bindings/."""
    parts = Path(path).parts
    return "/".join(parts[:2]) if parts[0] == "bindings" else parts[0]


def adapter_of(parts):
    """The adapter that a file belongs to: sources/cuda, sinks/json_lines; None if it serves all of them."""
    if len(parts) < 3 or parts[1] not in ("sources", "sinks", "bridges"):
        return None
    return "/".join((parts[1], parts[2].split(".")[0]))


def is_public(path):
    if path.suffix not in (".h", ".hpp"):
        return False
    return path.parts[0] in WHOLE or str(path.parent) in PUBLIC or str(path) in PUBLIC_FILES


def target_of(path, included, angled, root):
    """The file that an include line names: (path from the root, None), (None, what is wrong), or (None, None): not ours."""
    if angled:
        if not included.startswith("ringmain/"):
            return None, None
        target = Path(included.removeprefix("ringmain/"))
        target = Path("bindings") / target if target.parts[0] == "c" else target
        if not str(path).startswith(USERS):
            return None, f'write "{target}": only users write <{included}>'
        return (target, None) if is_public(target) else (None, f"{target} is not installed")
    if str(path).startswith(USERS):
        beside = path.parent / included
        return (None, None) if (root / beside).is_file() else (None, f"users write <ringmain/…>, not \"{included}\"")
    if is_public(path):
        target = Path(os.path.normpath(path.parent / included))
        wanted = os.path.relpath(target, path.parent)
        if (root / target).is_file() and included == wanted:
            return target, None
        return None, f'write a relative line, as installed headers do: there is no {target}'
    if not (root / included).is_file():
        beside = os.path.normpath(path.parent / included)
        if (root / beside).is_file():
            return None, f'write "{beside}": only installed headers write relative lines'
        return None, f'there is no {included} in the tree: write the path from the root, or <{included}> if it is not ours'
    return Path(included), None


def include_fault(path, target):
    """What is wrong if a file includes this file of ours, or None."""
    own, other = room_of(path), room_of(target)
    if other not in RANKS:
        return f"{other}/ is no room that can be included"
    if is_public(path) and not is_public(target):
        return f"{path.name} is installed and {target} is not"
    if own != other:
        if RANKS[other] < RANKS[own] or own == "tests":
            return None
        return f"{own}/ must not include {other}/: a room includes itself and the rooms below it"
    one, another = adapter_of(path.parts), adapter_of(target.parts)
    shared = one and one.startswith("sources/") and another in SHARED_SOURCES and is_public(target)
    if own == "adapters" and one and another not in (None, one) and not shared:
        return "adapters do not include each other; what several of them need lies in events/, adapters/formats/ or adapters/launch/"
    return None


def faults_of(path, text, root):
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        fault = None
        if found and not str(path).startswith(BY_BARE_NAME):
            target, fault = target_of(path, found["quoted"] or found["angled"], found["angled"] is not None, root)
            fault = fault or (target and include_fault(path, target))
        elif ORDER.search(line.split("//")[0]) and path.parts[0] not in ORDER_ROOMS:
            fault = "memory orders live in engine/: use the default order here, or move the protocol there"
        if fault:
            yield f"{path}:{number}: {fault}"


def main():
    root = tree.root_argument(__doc__)
    paths = [path for path in tree.files(root, {".hpp", ".cpp", ".h", ".c", ".cc", ".cu"}) if room_of(path) in RANKS]
    findings = []
    for path in paths:
        findings += faults_of(path, (root / path).read_text(encoding="utf-8"), root)
    return tree.tell(findings, len(paths))


if __name__ == "__main__":
    sys.exit(main())
