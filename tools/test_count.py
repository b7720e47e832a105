#!/usr/bin/env python3
"""How many tests passed, failed and were skipped, over several ctest runs, and why were those skipped?

usage: test_count.py [NAME=JUNIT_FILE | --stopped NAME]…

Prints the failed and the skipped tests by name and ends with the line "N passed, N failed, N skipped". A run
whose file is absent or holds no test, or that ended with an error (--stopped) although no test in its file failed,
counts as one failure: nothing was shown. A test that says "results: FILE" stands for the tests in that file (JUnit's form,
as pytest writes it), which are counted in its place. Exits with 1 if anything failed.
"""

import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree

# What GTEST_SKIP() << "reason" prints, and what a script that exits with 77 prints.
GTEST_REASON = re.compile(r"^\S+:\d+: Skipped\n(?P<reason>.*\S.*)$", re.MULTILINE)
SCRIPT_REASON = re.compile(r"^skipped: *(?P<reason>.*\S.*)$", re.MULTILINE)


# How pytest writes down that it left a whole file out.
FILE_REASON = re.compile(r"^\('.*', \d+, (?P<quote>['\"])Skipped: (?P<reason>.*)(?P=quote)\)$")
INNER_RESULTS = re.compile(r"^results: *(?P<path>.*\S)$", re.MULTILINE)


def read_inner(test, output):
    """The tests that this one ran, as (passed, failed lines, skipped lines); None if it is a single test."""
    found = INNER_RESULTS.search(output)
    if not found:
        return None
    try:
        cases = list(ElementTree.parse(found["path"]).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return 0, [f"{test}: left no results, or damaged ones"], []
    passed, failed, skipped = 0, [], []
    for case in cases:
        name = f"{test}: {case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif (skip := case.find("skipped")) is not None:
            whole_file = FILE_REASON.search(skip.text or "")
            skipped.append(f"{name}: {whole_file['reason'] if whole_file else skip.get('message') or 'no reason given'}")
        else:
            passed += 1
    return passed, failed, skipped


def skip_reason(output):
    for form in (GTEST_REASON, SCRIPT_REASON):
        found = form.search(output)
        if found:
            return found["reason"].strip().removeprefix("skipped: ")
    return "no reason given"


def says_so_itself(skip):
    return skip.get("message", "").startswith("SKIP_")


def read_run(name, path):
    """Returns the number of passed tests, and the failed and skipped ones as lines."""
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except FileNotFoundError:
        return 0, [f"{name}: did not build, or its tests did not run"], []
    except ElementTree.ParseError as error:
        return 0, [f"{name}: the result file is damaged ({error})"], []
    if not cases:
        return 0, [f"{name}: no test ran"], []
    passed, failed, skipped = 0, [], []
    for case in cases:
        test = f"{name}: {case.get('name').split('  # ')[0]}"  # without what a parameter prints as
        skip = case.find("skipped")
        inner = read_inner(test, case.findtext("system-out") or "") if skip is None or says_so_itself(skip) else None
        if inner is not None and any(inner):
            passed += inner[0]
            failed += inner[1]
            skipped += inner[2]
            if case.get("status") != "run" and skip is None and not inner[1]:
                failed.append(f"{test}: ended with an error outside of its tests ({case.get('status')})")
            continue
        # ctest says "skipped" of a missing program, too; only a test that says so itself was skipped.
        if skip is not None and says_so_itself(skip):
            skipped.append(f"{test}: {skip_reason(case.findtext('system-out') or '')}")
        elif case.get("status") == "run":
            passed += 1
        else:  # failed, timed out, not found, disabled: none of them showed anything
            reason = case.get("status") if skip is None else skip.get("message")
            failed.append(f"{test} ({reason})")
    return passed, failed, skipped


def main(arguments):
    parser = argparse.ArgumentParser(usage="test_count.py [NAME=JUNIT_FILE | --stopped NAME]…")
    parser.add_argument("runs", nargs="+", metavar="NAME=JUNIT_FILE", type=lambda run: run.split("=", 1))
    parser.add_argument("--stopped", action="append", default=[], metavar="NAME")
    arguments = parser.parse_intermixed_args(arguments)
    passed, failed, skipped = 0, [], []
    for name, path in arguments.runs:
        of_run = read_run(name, path)
        if name in arguments.stopped and not of_run[1]:
            of_run[1].append(f"{name}: ended with an error outside of its tests; its output above says which")
        passed += of_run[0]
        failed += of_run[1]
        skipped += of_run[2]
    for title, lines in (("skipped:", skipped), ("failed:", failed)):
        if lines:
            print("\n".join([title] + [f"  {line}" for line in lines]))
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
