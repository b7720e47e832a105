#!/usr/bin/env python3
"""Does ringmain keep its promises on this machine? Runs the benchmarks, judges each row, says so.

Each question runs in a process of its own, all of its contenders interleaved at random; pass after pass until every
judged case has enough repetitions in one placement class or the time is over. What ran while other programs took more
than a tenth of the machine is not judged. Exit codes: 0 all rows met, 1 a row missed or something failed, 2 wrong
use, 3 nothing missed but some inconclusive.
"""

import argparse
import datetime
import hashlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench_rows
import bench_table
from bench_measure import ENOUGH, Measures, read_json

ROOT = Path(__file__).resolve().parents[2]
CASES_MAX = 100
OTHERS_MAX = 0.10
HANGS_S = 150
LTTNG = ("flight/lttng_ust_on", "publish_alone_timed/lttng_ust_on")  # known to the program only while there is a session for them
PLENTY = 15  # repetitions of a judged case in its commonest class, after which no more is learnt


class Mixed(Exception):
    """The reports to go on from are of another machine, or of another build."""


def say(words):
    print(words, file=sys.stderr, flush=True)


def first_line(path, key):
    try:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if line.startswith(key):
                return line.split(":", 1)[-1].strip()
    except OSError:
        pass
    return ""


def commit():
    def git(*words):
        run = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
        return run.stdout.strip() if run.returncode == 0 else ""
    hash_ = git("rev-parse", "--short=12", "HEAD")
    return hash_ + ("+changes" if hash_ and git("status", "--porcelain", "--untracked-files=no") else "")


def machine():
    return {"cpu": first_line("/proc/cpuinfo", "model name") or platform.machine(), "cpus": os.cpu_count(),
            "kernel": platform.release(), "virtual": " hypervisor " in first_line("/proc/cpuinfo", "flags") + " ",
            "memory_kib": int((first_line("/proc/meminfo", "MemTotal") or "0").split()[0]), "commit": commit(),
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


def busy_seconds():
    """CPU seconds that the whole machine has spent, interrupts left out: the hypervisor's ticks are everybody's."""
    fields = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").split("\n")[0].split()[1:]]
    return (fields[0] + fields[1] + fields[2]) / os.sysconf("SC_CLK_TCK")  # user, nice, system


class Others:
    """How much of the machine did other programs take, from the constructor to share()?"""

    def __init__(self):
        self.began, self.busy, self.ours = time.monotonic(), busy_seconds(), self.own()

    @staticmethod
    def own():
        return sum(os.times()[:4])

    def share(self):
        seconds = time.monotonic() - self.began
        others = (busy_seconds() - self.busy) - (self.own() - self.ours)
        # A tick may be counted on the other side of the window.
        return max(0.0, others - 0.03) / max(seconds * os.cpu_count(), 1e-3)


def call(program, *options, beside=()):
    """One run of a benchmark program, below the command `beside`, whose processes end with it."""
    environment = {**os.environ, "LTTNG_UST_REGISTER_TIMEOUT": "0"}
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        run = subprocess.Popen(
            [*beside, str(program), *options, f"--benchmark_out={out.name}", "--benchmark_out_format=json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
        try:
            _, errors = run.communicate(timeout=HANGS_S)
        except BaseException as why:
            os.killpg(run.pid, signal.SIGTERM)
            try:
                run.wait(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()
            if isinstance(why, subprocess.TimeoutExpired):
                raise RuntimeError(f"{Path(program).name} {options[0]} did not end within {HANGS_S} s") from None
            raise
        if run.returncode != 0:
            raise RuntimeError(f"{Path(program).name} ended with status {run.returncode}: {errors.strip()[-400:]}")
        return json.loads(out.read() or b"{}")


def lttng_session():
    """What runs a command beside an LTTng session; () and a word where there can be none."""
    script = str(ROOT / "bench" / "scripts" / "with_lttng.sh")
    try:
        run = subprocess.run([script, "true"], capture_output=True, text=True, check=False, timeout=60)
        why = run.stderr.strip().rsplit("with_lttng.sh: ", 1)[-1] if run.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    if why:
        say(f"  LTTng's recording tracepoint is left out: {why}")
        return ()
    return (script,)


def python_with_ringmain():
    """An interpreter that finds the package: the one that ./dev test built it for, or this one; if neither does, this one."""
    built = [str(ROOT / "build" / preset / "python") for preset in ("release", "bench")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(
        [*built, *filter(None, [os.environ.get("PYTHONPATH")])])}
    for python in (str(ROOT / "build" / "venv" / "bin" / "python"), sys.executable):
        try:
            if subprocess.run([python, "-c", "import ringmain; ringmain.Bus"], capture_output=True, check=False,
                              env=environment).returncode == 0:
                return python, environment
        except OSError:
            pass  # there is no such interpreter
    say("  python: the package ringmain is not here (./dev test builds it, or pip install .): publishing from Python is left out")
    return sys.executable, None


def digest_of(program):
    """Of the program and of those of our libraries that it loads: the engine is in one of them."""
    found = [program]
    try:
        loaded = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
        found += sorted(Path(line.split("=> ")[1].split(" (")[0]) for line in loaded.splitlines() if re.search(r"libringmain\S* => /", line))
    except OSError:
        pass  # no ldd: the program alone
    return hashlib.sha256(b"".join(path.read_bytes() for path in found)).hexdigest()[:16]


class Program:
    """One benchmark program and the cases that it knows."""

    def __init__(self, path):
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"{path} was not built; run ./dev bench, which builds it.")
        self.digest = digest_of(self.path)
        listed = subprocess.run([str(self.path), "--benchmark_list_tests"], capture_output=True, text=True, check=True,
                                env={**os.environ, "RINGMAIN_BENCH_LTTNG": "listed"})
        self.cases = [line.split("/iterations:")[0] for line in listed.stdout.splitlines() if "/" in line]
        self.lttng = lttng_session() if set(LTTNG) & set(self.cases) else ()
        if not self.lttng:
            self.cases = [case for case in self.cases if case not in LTTNG]

    def questions(self, cases):
        return sorted({case.split("/")[0] for case in self.cases if case in cases})

    def repeat(self, question, cases, times):
        mine = [re.escape(case) for case in self.cases if case in cases and case.split("/")[0] == question]
        return call(self.path, f"--benchmark_filter=^({'|'.join(mine)})/iterations:", f"--benchmark_repetitions={times}",
                    "--benchmark_enable_random_interleaving=true", beside=self.lttng if any(case in cases and case.split("/")[0] == question for case in LTTNG) else ())


class Run:
    def __init__(self, arguments):
        self.arguments = arguments
        self.programs = [Program(path) for path in arguments.program]
        self.measures = Measures(tuple(arguments.classes))
        self.machine = machine()
        self.began = time.monotonic()
        self.spent = {}  # question -> seconds
        self.others = []
        self.failures = []
        self.out = Path(arguments.output)
        self.out.mkdir(parents=True, exist_ok=True)
        self.number = self.read_earlier() if arguments.go_on else 0

    def read_earlier(self):
        """The repetitions of earlier runs in the same folder; how many passes they were."""
        passes = 0
        for path in sorted(self.out.glob("*.*.json")):
            report = read_json(path)
            said = report.get("context", {})
            if said.get("cpu") != self.machine["cpu"] or said.get("program") not in {program.digest for program in self.programs}:
                raise Mixed(f"{path} is of another machine or of another build of the program: figures of the two are not mixed. "
                            "Give another --output, or leave --go-on out.")
            self.others.append(said.get("others_share", 0))
            self.keep(report, said.get("others_share", 0) > OTHERS_MAX)
            passes = max(passes, 1 + int(path.name.split(".")[-2]))
        return passes

    def keep(self, report, disturbed):
        self.measures.add(report, disturbed and not self.arguments.busy_machine)
        self.machine.update({key: report.get("context", {}).get(key, "") for key in
                             ("compiler", "flags", "barrier", "cores", "peers_left_out")})

    def over(self):
        return time.monotonic() - self.began > self.arguments.minutes * 60

    def known(self):
        return {case for program in self.programs for case in program.cases}

    def wanted(self):
        known = self.known()
        if self.arguments.only:
            return {case for case in known if re.search(self.arguments.only, case)}
        judged = bench_rows.judged_cases() & known
        return judged if self.arguments.quick else known

    def repeat(self, program, question, cases, times, number):
        others, since = Others(), time.monotonic()
        try:
            report = program.repeat(question, cases, times)
        except RuntimeError as failure:
            self.failures.append(str(failure))
            say(f"  {failure}")
            return
        share = others.share()
        self.others.append(share)
        self.spent[question] = self.spent.get(question, 0) + time.monotonic() - since
        disturbed = share > OTHERS_MAX
        self.keep(report, disturbed)
        report.setdefault("context", {}).update({"commit": self.machine["commit"], "cpu": self.machine["cpu"],
                                                 "program": program.digest, "others_share": round(share, 4)})
        (self.out / f"{question}.{number}.json").write_text(json.dumps(report), encoding="utf-8")
        say(f"  {question}: {self.spent[question]:.1f} s" +
            (f"; other programs took {100 * share:.0f} % of the machine" if disturbed else ""))

    def lacking(self, cases):
        """The cases that have too few repetitions in their commonest class, and have time left to get them."""
        for case in cases:
            placed = self.measures.commonest(case)
            if case in self.measures.built and len(self.measures.of(case, placed) if placed else ()) < PLENTY \
                    and self.spent.get(case.split("/")[0], 0) < self.arguments.seconds:
                yield case

    def go(self):
        cases = self.wanted()
        points = {tuple(case.split("/")[:1] + case.split("/")[2:]) for case in self.known()}
        if len(points) > CASES_MAX:
            self.failures.append(f"there are {len(points)} cases; at most {CASES_MAX}, so that a run stays short")
        judged = bench_rows.judged_cases()
        times, number = (3 if self.arguments.quick else ENOUGH), self.number
        if number and not self.arguments.only:  # what an earlier run did not come to, and what has too few repetitions
            cases = (cases - self.measures.built) | set(self.lacking(cases & judged))
        while cases and not (number and self.over()):
            say(f"pass {number + 1}: {len(cases)} of {len(self.known())}")
            for program in self.programs:
                for question in program.questions(cases):
                    if not (number and self.over()):
                        self.repeat(program, question, cases, times, number)
            if number == self.number and not self.arguments.only:
                self.headers()
                if not self.arguments.no_python:
                    self.python_peer()
            number += 1
            cases = set(self.lacking(cases & judged)) if not self.arguments.only else set()

    def headers(self):
        build = self.programs[0].path.resolve().parents[1]
        if not (build / "CMakeCache.txt").is_file():
            say(f"  headers: {build} is not the folder of a build: what including costs a compiler is left out")
            return
        self.ask("what including costs", sys.executable, "bench_headers.py", str(build))

    def python_peer(self):
        python, environment = python_with_ringmain()
        self.ask("the Python registry", python, "bench_python_registry.py", env=environment)

    def ask(self, what, python, script, *words, env=None):
        """Adds the report that a script prints."""
        others = Others()
        run = subprocess.run([python, str(ROOT / "bench" / "scripts" / script), *words], capture_output=True, text=True, check=False,
                             env=env)
        if run.returncode != 0:
            self.failures.append(f"{what} failed: {run.stderr.strip()[-200:]}")
            return
        self.measures.add(json.loads(run.stdout), others.share() > OTHERS_MAX and not self.arguments.busy_machine)

    def result(self):
        rows = bench_rows.judge(self.measures)
        faults = sorted(set(self.measures.faults)) + self.failures
        self.machine["others_share"] = round(max(self.others, default=0), 4)
        self.machine["busy_machine"] = self.arguments.busy_machine
        self.machine["quick"] = self.arguments.quick
        self.machine["minutes"] = round((time.monotonic() - self.began) / 60, 2)
        return {"rows": rows, "machine": self.machine, "faults": faults, "cases": self.measures.summary()}


def parse(words):
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", action="append", help=argparse.SUPPRESS)
    parser.add_argument("--no-python", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-plots", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="only what the rows need, in about a minute")
    parser.add_argument("--minutes", type=float, help="when to stop repeating: 5, with --quick 1")
    parser.add_argument("--seconds", type=float, default=30, help="time for one question: 30")
    parser.add_argument("--json", metavar="FILE", help="write rows, machine and all figures there")
    parser.add_argument("--output", metavar="DIR", default=str(ROOT / "build" / "bench" / "results"),
                        help="reports and plots go there: build/bench/results")
    parser.add_argument("--go-on", action="store_true",
                        help="go on from the reports in --output, of the same build and machine: a run in pieces")
    parser.add_argument("--only", metavar="REGEX", help="only cases that match, once over, without a verdict")
    parser.add_argument("--classes", type=lambda text: [float(word) for word in text.split(",")], default=[28, 130],
                        metavar="S,F", help="core-to-core nanoseconds below which a pair counts as one core's threads, "
                                            "and from which on as far apart: 28,130")
    parser.add_argument("--busy-machine", action="store_true",
                        help="keep what ran beside other programs: to try the suite, never for figures")
    arguments = parser.parse_args(words)
    if len(arguments.classes) != 2 or not 0 < arguments.classes[0] < arguments.classes[1]:
        parser.error("--classes wants two rising numbers, such as 28,130")
    if arguments.minutes is None:
        arguments.minutes = 0.9 if arguments.quick else 4.7
    if arguments.minutes <= 0 or arguments.seconds <= 0:
        parser.error("--minutes and --seconds want numbers above 0")
    arguments.program = arguments.program or [str(ROOT / "build" / "bench" / "bin" / name)
                                              for name in ("ringmain_bench", "ringmain_bench_memory")]
    return arguments


def main(words=None):
    arguments = parse(words)
    try:
        run = Run(arguments)
        run.go()
    except (FileNotFoundError, PermissionError, subprocess.CalledProcessError, Mixed) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: interrupted; nothing was judged", file=sys.stderr)
        return 130
    result = run.result()
    text = json.dumps(result, indent=1)
    for path in [run.out / "bench.json", *([Path(arguments.json)] if arguments.json else [])]:
        try:
            path.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            print(f"bench: {path} cannot be written: {error.strerror}", file=sys.stderr)
            return 1
    if arguments.only:
        print(bench_table.cases_text(result))
        return 1 if result["faults"] else 0
    print(bench_table.rows_text(result))
    if not arguments.no_plots:
        draw(run.out)
    say(f"reports and plots: {run.out}")
    return bench_rows.exit_status(result["rows"], result["faults"])


def draw(out):
    """Plots with a Python that has matplotlib: not every interpreter sees the system's packages."""
    for python in (sys.executable, "/usr/bin/python3"):
        run = subprocess.run([python, str(ROOT / "bench" / "scripts" / "bench_plot.py"), str(out / "bench.json"), str(out)],
                             capture_output=True, text=True, check=False)
        if run.returncode == 0:
            return
    say(f"the plots were left out: {(run.stderr or run.stdout).strip().splitlines()[-1]}")


if __name__ == "__main__":
    sys.exit(main())
