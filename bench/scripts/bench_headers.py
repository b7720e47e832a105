#!/usr/bin/env python3
"""What does including ringmain cost a compiler, beside <functional>?

The files of bench/headers are compiled as the benchmark programs were, by the same compiler with the same flags, in random order;
what counts is the compiler's own CPU time. Prints a report in the form of Google Benchmark's.

usage: bench_headers.py BUILD_FOLDER [REPETITIONS]
"""

import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "headers"
CASES = ("functional", "publishes", "subscribes")
REPETITIONS = 7


def compiler_of(build):
    """The compiler and the flags of a build, as words."""
    cached = dict(re.findall(r"^(\w+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(encoding="utf-8"), re.M))
    kind = cached.get("CMAKE_BUILD_TYPE", "").upper()
    flags = f"{cached.get('CMAKE_CXX_FLAGS', '')} {cached.get(f'CMAKE_CXX_FLAGS_{kind}', '')}"
    return [cached["CMAKE_CXX_COMPILER"], "-std=c++20", *shlex.split(flags)]


def cpu_seconds(command):
    """Of one compiler and of the programs that it starts."""
    with tempfile.TemporaryFile("w+") as said:
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        if run.returncode != 0:
            said.seek(0)
            raise SystemExit(f"{shlex.join(command)} ended with {run.returncode}: {said.read().strip()[:400]}")
    return used.ru_utime + used.ru_stime


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__.strip().split("\n\n")[-1], file=sys.stderr)
        return 2
    build, repetitions = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else REPETITIONS
    compile_one = [*compiler_of(build), "-iquote", str(SOURCES.parents[1]), "-c", "-o", os.devnull]
    os.environ["CCACHE_DISABLE"] = "1"  # the compiler's name may be ccache's
    runs = []
    for case in CASES:  # the files are in memory afterwards
        cpu_seconds([*compile_one, str(SOURCES / f"{case}.cpp")])
    for _ in range(repetitions):
        for case in random.sample(CASES, len(CASES)):
            runs.append({"name": f"headers/{case}", "run_type": "iteration",
                         "value": cpu_seconds([*compile_one, str(SOURCES / f"{case}.cpp")])})
    print(json.dumps({"context": {}, "benchmarks": runs}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
