#!/usr/bin/env python3
"""Does every promise in docs/guarantees.md name tests that exist?

In the tables of the page the last cell of each row says what shows the promise: tests (`Suite.Test`, `Suite` for all
of one suite, `…Test` for another one of the suite named before it), models (`file.pml -DVARIANT`), files (`name.cpp`),
scripts, what only ctest names (`soak.a_large_bus…`, `interleave.finds.FAULT`), and programs of tests/cli/neighbours.txt. Each of them must be found below tests/, tools/ or examples/; a row that names none is no promise.

usage: check_guarantees.py SOURCE_ROOT    Exit codes: 0 they do, 1 one does not, 2 wrong use.
"""
import pathlib
import re
import sys

QUOTED = re.compile(r"`([^`]+)`")
CASE = re.compile(r"\b(?:TEST|TEST_F|TEST_P)\(\s*(\w+)\s*,\s*(\w+)\s*\)")


def known(root: pathlib.Path) -> tuple[dict[str, set[str]], str, set[str]]:
    suites: dict[str, set[str]] = {}
    files = set()
    for path in sorted(p for room in ("tests", "tools", "examples") for p in (root / room).rglob("*")):
        files.add(path.name)
        if path.suffix == ".cpp":
            for suite, test in CASE.findall(path.read_text()):
                suites.setdefault(suite, set()).add(test)
        elif path.suffix == ".py" and path.name.startswith("test_") or path.name.endswith("_test.py"):
            for suite, body in re.findall(r"^class (\w+)\(.*?\):\n(.*?)(?=^\S|\Z)", path.read_text(), re.M | re.S):
                suites.setdefault(suite, set()).update(re.findall(r"^    def (test_\w+)", body, re.M))
    rows = root / "tests/model/models.txt"
    return suites, rows.read_text() if rows.exists() else "", files


def of_ctest(root: pathlib.Path) -> set[str]:
    names = set()
    for path in (root / "tests").rglob("CMakeLists.txt"):
        names.update(re.findall(r"add_test\(NAME ([\w.]+)", path.read_text()))
    faults = root / "tests/interleave/faults.txt"
    if faults.exists():
        names.update(f"interleave.finds.{fault}" for fault in re.findall(r"^\[([^]]+)\]", faults.read_text(), re.M))
    neighbours = root / "tests/cli/neighbours.txt"
    if neighbours.exists():
        names.update(re.findall(r"^(?:[a-z]+ )*([\w.-]+) +\|", neighbours.read_text(), re.M))
    return names


def complaint(name: str, last_suite: str, suites: dict[str, set[str]], rows: str, files: set[str]) -> str:
    if re.search(r"\.pml\b", name):
        missing = [word for word in name.split() if word not in rows]
        return f"the models' table has no {' '.join(missing)}" if missing else ""
    if re.fullmatch(r"[\w/]+\.(cpp|hpp|py|sh)( .*)?", name):
        return "" if name.split()[0].rsplit("/", 1)[-1] in files else "there is no such file"
    suite, _, test = (last_suite + "." + name[1:] if name.startswith("…") else name).partition(".")
    if suite not in suites:
        return "there is no test or suite of that name" if name[0].islower() or not suite else f"there is no suite {suite}"
    if test and test not in suites[suite]:
        return f"{suite} has no test {test}"
    return ""


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(sys.argv[1])
    suites, rows, files = known(root)
    by_ctest = of_ctest(root)
    looked_at = found = 0
    seen = set()
    for number, line in enumerate((root / "docs/guarantees.md").read_text().splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if len(cells) < 3 or not re.fullmatch(r"\w{1,4}\d+\w?", cells[0]):
            continue
        looked_at += 1
        names = QUOTED.findall(cells[-1])
        problems = [] if names else ["names no test"]
        if cells[0] in seen:
            problems.append("is the name of another row: take the next number of its letter")
        seen.add(cells[0])
        suite = ""
        for name in names:
            wrong = "" if name in by_ctest else complaint(name, suite, suites, rows, files)
            if wrong:
                problems.append(f"`{name}`: {wrong}")
            if "." in name and not name.startswith("…"):
                suite = name.partition(".")[0]
        found += len(problems)
        for problem in problems:
            print(f"docs/guarantees.md:{number}: {cells[0]} {problem}")
    print(f"{looked_at} looked at, {found} found")
    return 1 if found or not looked_at else 0


if __name__ == "__main__":
    sys.exit(main())
