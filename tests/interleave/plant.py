#!/usr/bin/env python3
"""Copies the engine to OUT with the faults of faults.txt planted, each with a switch of its own.

A fault is a block of lines:
    [name] scenario …          the scenarios that should find it
    engine/deliver/worker.cpp          the file
    - old text                 occurs exactly once in the file, on one line or several
    + new text                 in which FAULT is true while this fault is switched on
and perhaps further pairs of old and new. With FAULT false the new text must mean what the old one means.

A fault whose old text is not there (any more) is left out of the copy and said so by the program's --list and by
the fault's test, so that a change of the engine breaks that test and not the build.
What lies below STAND_IN takes the place of the engine's file of that name.
Usage: plant.py FAULTS ENGINE_DIR OUT [STAND_IN]
"""

import re
import sys
from pathlib import Path


def blocks(text):
    """Yields (name, scenarios, file, edits), an edit being the old text and the new one."""
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if not lines:
            continue
        head = re.fullmatch(r"\[([\w-]+)\] (.+)", lines[0])
        edits = re.findall(r"((?:- .*\n)+)((?:\+ .*\n)+)", "\n".join(lines[2:]) + "\n")
        if not head or not edits or sum(part.count("\n") for edit in edits for part in edit) != len(lines) - 2:
            sys.exit(f"plant.py: this is not a fault as the top of plant.py describes it:\n{block}")
        edits = [tuple(re.sub(r"(?m)^[-+] ", "", part).strip() for part in edit) for edit in edits]
        yield head[1], head[2].split(), lines[1].strip(), edits


def pattern(old):
    """Matches the text however it is indented and broken into lines."""
    return re.compile(r"\s+".join(re.escape(word) for word in old.split()))


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    faults, engine, out, *stand_in = (Path(argument) for argument in sys.argv[1:])
    texts = {}
    for folder in (engine, *(folder / "engine" for folder in stand_in)):
        for path in folder.rglob("*.[ch]pp"):
            texts[f"engine/{path.relative_to(folder)}"] = path.read_text()
    rows = []
    for number, (name, scenarios, file, edits) in enumerate(blocks(faults.read_text())):
        text, planted = texts.get(file, ""), True
        for old, new in edits:
            switched = new.replace("FAULT", f"::ringmain::interleave::planted({number})")
            planted = planted and len(pattern(old).findall(text)) == 1
            text = pattern(old).sub(lambda _, by=switched: by, text)
        if planted:
            texts[file] = text
        rows.append(f'{{"{name}", "{" ".join(scenarios)}", {str(planted).lower()}}},')
    for name, text in texts.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)
    for stale in (out / "engine").rglob("*.[ch]pp"):
        if str(stale.relative_to(out)) not in texts:
            stale.unlink()
    (out / "faults.inc").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
