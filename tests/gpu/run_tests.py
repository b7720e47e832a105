#!/usr/bin/env python3
"""Runs the tests that need a GPU, each in a process of its own that is ended when it hangs. run_all.sh builds and calls this."""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import machine
from place import Failed, Place, Skipped
from tests_of_calls import TESTS as OF_CALLS
from tests_of_collectives import TESTS as OF_COLLECTIVES
from tests_of_company import TESTS as OF_COMPANY
from tests_of_completions import TESTS as OF_COMPLETIONS
from tests_of_cost import TESTS as OF_COST
from tests_of_nccl import TESTS as OF_NCCL

# name: (group, seconds after which it hangs, the function). A group's seconds are eight minutes at most.
TESTS = dict(sorted({**OF_CALLS, **OF_COST, **OF_COMPANY, **OF_COLLECTIVES, **OF_COMPLETIONS, **OF_NCCL}.items(), key=lambda one: str(one[1][0])))
GROUPS = tuple(dict.fromkeys(str(group) for group, _, _ in TESTS.values()))
GROUP_SECONDS_MAX = 480
RESULTS_BYTES_MAX = 16 << 20


def run_one(name, place):
    """In this process. What it says goes to a file, so that a test may print what it likes."""
    answer = {"id": name, "figures": place.figures, "answers": place.answers}
    try:
        answer.update(verdict="PASS", reason=TESTS[name][2](place))
    except Skipped as why:
        answer.update(verdict="SKIP", reason=str(why))
    except Failed as why:
        answer.update(verdict="FAIL", reason=str(why))
    except Exception as what:  # whatever it is, the others go on
        answer.update(verdict="FAIL", reason=f"{type(what).__name__}: {what}")
    return answer


def run_apart(name, arguments, folder):
    """In a process and a session of its own; all of it is ended when its time is up."""
    said = Path(folder) / f"{name}.json"
    command = [sys.executable, __file__, "--in-this-process", name, "--said", str(said), "--build", str(arguments.build),
               "--output", str(arguments.output), "--python", arguments.python, *(["--fakes"] if arguments.fakes else [])]
    limit = float(os.environ.get("GPU_TEST_SECONDS", TESTS[name][1]))
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
                          env={**os.environ, "TMPDIR": str(folder)}) as child:
        try:
            _, error = child.communicate(timeout=limit)
            fault = f"it ended with {signal.Signals(-child.returncode).name}" if child.returncode < 0 else f"it ended with {child.returncode}"
        except BaseException as what:  # a signal to us ends the test, too
            os.killpg(child.pid, signal.SIGKILL)
            if not isinstance(what, subprocess.TimeoutExpired):
                raise
            error, fault = "", f"it hung: nothing after {limit:g} s"
    answer = {"id": name, "verdict": "FAIL", "reason": f"{fault}: {error.strip()[-300:]}".rstrip(": ")}
    if fault == "it ended with 0" and said.exists():
        answer = json.loads(said.read_text())
    answer["seconds"] = round(time.monotonic() - begin, 1)
    return answer


def write_results(output, there, answers):
    text = json.dumps({"machine": there, "tests": answers}, indent=1)
    if len(text) > RESULTS_BYTES_MAX:
        text = json.dumps({"machine": there, "tests": [{key: one[key] for key in ("id", "verdict", "reason")} for one in answers]})
    half = output / "results.json.half"  # so that the file is whole, or as it was, whenever this is ended
    try:
        output.mkdir(parents=True, exist_ok=True)
        half.write_text(text + "\n")
        half.replace(output / "results.json")
    except OSError as why:
        stop(2, f"results cannot be written to {output} ({why.strerror}); name another folder with --output")
    finally:
        with contextlib.suppress(OSError):
            half.unlink()


def stop(status, sentence):
    print(f"run_all.sh: {sentence}", file=sys.stderr)
    sys.exit(status)


def end(number, _):
    """What was done so far stays in the results; the test that runs is ended with us."""
    stop(128 + number, f"ended by {signal.Signals(number).name}")


def one_line(text):
    return " ".join(str(text).split())[:600]


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build/gpu"))
    parser.add_argument("--output", type=Path)
    parser.add_argument("--group", choices=(*GROUPS, "all"), default="all")
    parser.add_argument("--only", choices=TESTS)
    parser.add_argument("--python", default=sys.executable)
    for word in ("--list", "--fakes", "--ctest", "--is-there-a-gpu"):
        parser.add_argument(word, action="store_true")
    parser.add_argument("--in-this-process", choices=TESTS, help=argparse.SUPPRESS)
    parser.add_argument("--said", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.output = (arguments.output or arguments.build / "gpu-results").resolve()
    arguments.build = arguments.build.resolve()
    return arguments


def main():
    arguments = read_arguments()
    chosen = [name for name, (group, _, _) in TESTS.items()
              if arguments.only in (None, name) and arguments.group in ("all", str(group))]
    if arguments.list:
        for name in chosen:
            group, seconds, function = TESTS[name]
            print(f"{name:4} group {group}, at most {seconds} s: {function.__doc__.splitlines()[0]}")
        return 0
    place = Place(arguments.build, arguments.output, arguments.fakes, arguments.python)
    if arguments.in_this_process:
        arguments.said.write_text(json.dumps(run_one(arguments.in_this_process, place)))
        return 0
    for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ending, end)
    there = machine.probe(place.variables())
    if arguments.is_there_a_gpu:
        return 0 if there["gpu"] else 1
    answers = []
    write_results(arguments.output, there, answers)  # a folder that cannot be written to is found out now
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            answer = run_apart(name, arguments, folder) if there["gpu"] else {"id": name, "verdict": "SKIP", "reason": there["why"]}
            answers.append(answer)
            for line in answer.get("answers", []):
                print(f"# {name} {one_line(line)}", flush=True)
            print(name, answer["verdict"], one_line(answer["reason"]), flush=True)
            write_results(arguments.output, there, answers)
    verdicts = [answer["verdict"] for answer in answers]
    if arguments.ctest and set(verdicts) == {"SKIP"}:
        print(f"skipped: {answers[0]['reason']}")
    print(f"{verdicts.count('PASS')} passed, {verdicts.count('FAIL')} failed, {verdicts.count('SKIP')} skipped")
    if arguments.ctest and set(verdicts) == {"SKIP"}:
        return 77
    return 1 if "FAIL" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
