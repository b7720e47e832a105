#!/usr/bin/env python3
"""Does every edge between threads have both of its ends?

In engine/, every memory order stronger than relaxed has the name of its edge (e.published) in a comment on the
statement or right above it. The names are those of the table in docs/edges.md, and each of them is used. Each must
stand on a releasing and on an acquiring side; acq_rel, seq_cst and a fence are both. The asymmetric barrier is an edge
of its own kind: a name at asymmetric_fence_light() or asymmetric_fence_light_or_full() must stand at an
asymmetric_fence_heavy() too, and the other way round. An atomic operation that names no order is found as well,
because nobody can tell whether the default was meant.

Run it after the formatter, which can move a name off its line.
"""

import re
import sys
from collections import defaultdict

import tree

ORDER = re.compile(r"\bmemory_order(?:_|::)(?P<order>relaxed|consume|acquire|release|acq_rel|seq_cst)\b")
BARRIER = re.compile(r"(?<![\w:.~])(?P<call>asymmetric_fence_(?:light|light_or_full|heavy))\(\)\s*(?:;|\)|&&|\|\|)")
TABLE = "docs/edges.md"
ROW = re.compile(r"^\| `(?P<name>[a-z]\.[a-z_]+)` \|", re.M)
NAME = re.compile(r"(?<![\w.])(?P<name>[a-z]\.[a-z_]+)(?!\w)")
OPERATION = re.compile(
    r"(?:\.|->)(?:load|store|exchange|fetch_\w+|compare_exchange_\w+|test_and_set)\s*\(")
SIDES = {
    "acquire": {"acquiring"}, "consume": {"acquiring"}, "release": {"releasing"},
    "acq_rel": {"acquiring", "releasing"}, "seq_cst": {"acquiring", "releasing", "light", "heavy"},
    "asymmetric_fence_light": {"light"}, "asymmetric_fence_light_or_full": {"light"},
    "asymmetric_fence_heavy": {"heavy"},
}
BARRIER_ITSELF = ("atomics.hpp", "atomics.cpp")  # the bodies of asymmetric_fence_light() and asymmetric_fence_heavy(): no edge runs there
PARTNER = {"acquiring": "releasing", "releasing": "acquiring", "light": "heavy", "heavy": "light"}


def split_comment(line):
    code, mark, comment = line.partition("//")
    return code.rstrip(), comment if mark else ""


def statements(text):
    """Yields (line number, code, comments): each statement with its comments and those right above it."""
    above, code, comments, start = [], [], [], 0
    for number, line in enumerate(text.splitlines(), 1):
        part, comment = split_comment(line)
        if not part.strip():
            if code:
                comments.append(comment)
            elif comment:
                above.append(comment)
            else:
                above = []
            continue
        if not code:
            start = number
        code.append(part)
        comments.append(comment)
        if part.endswith((";", "{", "}", ":")) or part.lstrip().startswith("#"):
            yield start, " ".join(code), above + comments
            above, code, comments = [], [], []
    if code:
        yield start, " ".join(code), above + comments


def names_in(comments, known):
    for comment in comments:
        for found in NAME.finditer(comment):
            if found["name"] in known:
                yield found["name"]


def arguments_of(code, opening):
    depth = 0
    for position in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[position], 0)
        if depth == 0:
            return code[opening:position]
    return code[opening:]


def faults_of(path, text, worn, known):
    """Yields the faults of one file; adds its names to worn: name -> side -> places."""
    for number, code, comments in statements(text):
        place = f"{path}:{number}"
        for operation in OPERATION.finditer(code):
            if "order" not in arguments_of(code, operation.end() - 1):
                yield f"{place}: this atomic operation names no memory order"
        strong = [found["order"] for found in ORDER.finditer(code) if found["order"] != "relaxed"]
        if path.name not in BARRIER_ITSELF:
            strong += [found["call"] for found in BARRIER.finditer(code)]
        if not strong:
            continue
        names = set(names_in(comments, known))
        if not names:
            yield f"{place}: {strong[0]} wears no edge's name; write one of {TABLE} beside the order, as in // e.published"
        for name in names:
            for order in strong:
                for side in SIDES[order]:
                    worn[name][side].append((place, order))


def missing_ends(worn):
    for name, sides in sorted(worn.items()):
        for side, places in sorted(sides.items()):
            # A fence or seq_cst operation stands in for either half of the barrier, and needs neither.
            asking = [place for place, order in places if order != "seq_cst"]
            if asking and not sides.get(PARTNER[side]):
                yield f"{asking[0]}: edge {name} is worn on its {side} side only; no {PARTNER[side]} side wears it"


def main():
    root = tree.root_argument(__doc__)
    paths = [path for path in tree.files(root, {".hpp", ".cpp"}) if path.parts[0] == "engine"]
    table = root / TABLE
    known = ROW.findall(table.read_text(encoding="utf-8")) if table.is_file() else []
    worn = defaultdict(lambda: defaultdict(list))
    findings = [f"{TABLE}: edge {name} is there twice" for name in sorted(set(known)) if known.count(name) > 1]
    for path in paths:
        findings += faults_of(path, (root / path).read_text(encoding="utf-8"), worn, known)
    findings += missing_ends(worn)
    findings += [f"{TABLE}: edge {name} is worn nowhere in engine/; take its line out" for name in known if name not in worn]
    if not findings:
        print(f"edges: {' '.join(sorted(worn)) or 'none'}")
    return tree.tell(findings, len(paths))


if __name__ == "__main__":
    sys.exit(main())
