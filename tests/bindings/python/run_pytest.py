#!/usr/bin/env python3
"""One file of tests under pytest, for ctest.

usage: run_pytest.py RESULTS TEST_FILE

Leaves RESULTS (JUnit's form) and says where, so that tools/test_count.py counts each test. Exits with 77 if all of them were
skipped, with what pytest exits with otherwise; a file without a test is a failure.
"""

import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree


NOTHING_COLLECTED = 5  # by pytest: also when a whole file was skipped


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    results, tests = pathlib.Path(sys.argv[1]), sys.argv[2]
    results.parent.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)
    print(f"results: {results}", flush=True)
    # importlib: with this folder on the path, its folder torch would be a package of that name.
    code = subprocess.run([sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider", "-p",
                           "no:faulthandler", "--tb=short", "-rs", f"--junitxml={results}", tests], check=False).returncode
    if code in (0, NOTHING_COLLECTED) and results.exists():
        cases = list(ElementTree.parse(results).getroot().iter("testcase"))
        if cases and all(case.find("skipped") is not None for case in cases):
            print("skipped: all of them; the reasons stand above")
            return 77
    return code


if __name__ == "__main__":
    sys.exit(main())
