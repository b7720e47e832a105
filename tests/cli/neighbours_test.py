#!/usr/bin/env python3
"""Can a program tell that `ringmain run` is there? Each program of neighbours.txt runs alone and below it, and all must be equal.

usage: neighbours_test.py TESTCASE…, with the program in $RINGMAIN_BINARY and the test programs in $RINGMAIN_PROGRAMS
       neighbours_test.py --only NAME-OR-PART    what differs, for each program whose name has that part
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from cases import main

HERE = Path(__file__).resolve().parent
BINARY = str(Path(os.environ.get("RINGMAIN_BINARY", HERE.parents[1] / "build/release/bin/ringmain")).resolve())
PROGRAMS = Path(os.environ.get("RINGMAIN_PROGRAMS", Path(BINARY).parent)).resolve()  # they run elsewhere
LIMIT_S = 100
OURS = re.compile(rb"^ringmain: .*\n", re.MULTILINE)


class Neighbour(NamedTuple):
    name: str
    shell: str
    told: bool
    idle: bool
    script: str


def neighbours():
    for line in (HERE / "neighbours.txt").read_text().splitlines():
        head, bar, script = line.partition("|")
        if bar and not line.startswith("#"):
            *marks, name = head.split()
            unknown = set(marks) - {"bash", "told", "idle"}
            if unknown:
                raise ValueError(f"neighbours.txt: {name} has an unknown mark: {unknown.pop()}")
            yield Neighbour(name, "bash" if "bash" in marks else "sh", "told" in marks, "idle" in marks, script.strip())


class Result(NamedTuple):
    """What a program did that anybody can see."""

    status: object
    output: bytes
    error: bytes
    files: dict


def run(words, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    variables = {**os.environ, "N": str(PROGRAMS / "run_neighbour"), "L": str(PROGRAMS / "run_listed"), "PWD": str(folder)}
    with subprocess.Popen(words, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            output, error = process.communicate(timeout=LIMIT_S)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, error = process.communicate()
            status = "did not end"
    files = {}
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        files[os.fsencode(path.relative_to(folder))] = (oct(path.lstat().st_mode), content)
    return Result(status, output, error, files)


def differences(neighbour, folder):
    """Sentences; none where nobody could tell."""
    words = [neighbour.shell, "-c", neighbour.script]
    alone = run(words, folder / "here")
    sink = folder / "sink.jsonl"
    asked = [] if neighbour.idle else ["--source", "heartbeat:3"]
    below = run([BINARY, "run", *asked, "--sink", f"json_lines:{sink}", "--", *words], folder / "here")
    if neighbour.told:
        below = below._replace(error=OURS.sub(b"", below.error))
    for what in Result._fields:
        one, other = getattr(alone, what), getattr(below, what)
        if one != other:
            yield f"{what}: {str(one)[:300]} alone, {str(other)[:300]} below run"
    # A torn line is one that somebody else wrote into, or that was not finished. Blanks are what was taken back.
    for number, line in enumerate(sink.read_bytes().splitlines(keepends=True) if sink.exists() else (), 1):
        try:
            if not line.endswith(b"\n"):
                raise ValueError
            if line.strip():
                json.loads(line)
        except ValueError:
            yield f"line {number} of the sink is not whole: {line[:200]!r}"
            return


def check(neighbour):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        return neighbour, list(differences(neighbour, Path(folder)))


def checked(chosen):
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        yield from pool.map(check, chosen)


def case(group):
    def test_nobody_can_tell(self):
        chosen = [n for n in EVERY if n.name.startswith(group + ".")]
        for neighbour, found in checked(chosen):
            with self.subTest(neighbour.name):
                self.assertEqual(found, [], f"{neighbour.name}: {neighbour.script}")
    return type(f"{group.capitalize()}Test", (unittest.TestCase,), {"test_nobody_can_tell": test_nobody_can_tell})


EVERY = list(neighbours())
for _group in sorted({n.name.partition(".")[0] for n in EVERY}):
    globals()[f"{_group.capitalize()}Test"] = case(_group)


class ListTest(unittest.TestCase):
    def test_two_hundred_different_neighbours(self):
        self.assertGreaterEqual(len(EVERY), 200)
        self.assertEqual(len({n.name for n in EVERY}), len(EVERY))
        self.assertEqual(len({(n.shell, n.script) for n in EVERY}), len(EVERY))


def show(part):
    failed = 0
    for neighbour, found in checked([n for n in EVERY if part in n.name]):
        failed += bool(found)
        for sentence in found:
            print(f"{neighbour.name}: {sentence}", flush=True)
    print(f"{failed} differ")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(show(sys.argv[2]) if sys.argv[1:2] == ["--only"] else main())
