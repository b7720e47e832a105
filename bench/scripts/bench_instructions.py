#!/usr/bin/env python3
"""Do a publish and a dispatch take as many instructions as recorded?

usage: bench_instructions.py PROGRAM COMPILER FOLDER [--record]
Counts under callgrind and compares with FOLDER/COMPILER.json, such as GNU-12.json: more or less by 2 % and by at
least one instruction is a finding. --record writes the file instead. A count has no noise, so it sees what a clock
does not; it does not see a cache miss.
Exit codes: 0 as recorded, 1 changed or wrong, 2 wrong use, 77 no valgrind, or nothing recorded for this compiler.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOLERANCE = 0.02
SKIPPED = 77


def count(program):
    """Instructions for one event, by function; what callgrind says of each count_* function, callees included."""
    with tempfile.TemporaryDirectory(prefix="ringmain-count-") as folder:
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=count_*",
             "--compress-strings=no", f"--callgrind-out-file={folder}/out", str(program)],
            capture_output=True, text=True, check=False, env={**os.environ, "RINGMAIN_WORKERS": "1"})
        if run.returncode != 0:
            raise RuntimeError(f"{Path(program).name} under valgrind ended with status {run.returncode}: "
                               f"{run.stderr.strip().splitlines()[-1] if run.stderr.strip() else ''}")
        events = int(run.stdout)
        report = Path(f"{folder}/out").read_text(encoding="utf-8", errors="replace")
    found = {name: round(cost / events, 2) for name, cost in inclusive(report).items()}
    if not found:
        raise RuntimeError("callgrind counted nothing")
    return found


def inclusive(report):
    """The cost of each count_* function: of its own lines, and of the calls that it makes."""
    costs, name = {}, None
    for line in report.splitlines():
        if line.startswith("fn="):
            match = re.match(r"fn=(?:\(\d+\) ?)?count_(\w+)$", line)
            name = match and match[1]
        elif name and re.match(r"[+*\-\d]", line):  # also the line after calls=, which has their whole cost
            costs[name] = costs.get(name, 0) + int(line.split()[-1])
    return costs


def compare(counted, recorded):
    """One sentence for each function that changed."""
    findings = []
    for name in sorted(counted.keys() | recorded.keys()):
        now, before = counted.get(name), recorded.get(name)
        if now is None or before is None:
            findings.append(f"{name}: {'recorded' if now is None else 'counted'} only")
        elif abs(now - before) > max(1.0, TOLERANCE * before):
            findings.append(f"{name}: {now} instructions for one event, recorded {before} ({100 * (now / before - 1):+.1f} %)")
    return findings


def main():
    words = [word for word in sys.argv[1:] if word != "--record"]
    if len(words) != 3:
        print(__doc__.strip().split("\n\n")[1], file=sys.stderr)
        return 2
    program, compiler, folder = words
    record = Path(folder) / f"{compiler}.json"
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not here; on Debian: apt-get install valgrind")
        return SKIPPED
    if "--record" not in sys.argv and not record.is_file():
        print(f"skipped: nothing is recorded for {compiler}; {Path(__file__).name} … --record writes {record.name}")
        return SKIPPED
    try:
        counted = count(program)
    except (RuntimeError, ValueError, OSError) as error:
        print(f"bench_instructions: {error}")
        return 1
    if "--record" in sys.argv:
        record.write_text(json.dumps(counted, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"written: {record.name}: {counted}")
        return 0
    findings = compare(counted, json.loads(record.read_text(encoding="utf-8")))
    for finding in findings:
        print(finding)
    if findings:
        print(f"If that is meant, run: {' '.join(sys.argv)} --record")
    print(f"{len(counted)} looked at, {len(findings)} found")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
