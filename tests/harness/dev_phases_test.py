#!/usr/bin/env python3
"""Does ./dev test say where its time went, before the count, which stays the last line, and waste none of it?"""

import re
import shutil
import sys
import time
import unittest
from pathlib import Path

from dev_test import CTEST, DevTest, JUNIT

SUMMARY = """#!/bin/bash
while [ $# -gt 0 ]; do [ "$1" != --output-log ] || log=$2; shift; done
cat >"$log" <<'END'
Label Time Summary:
stress    = 612.34 sec*proc (7 tests)
unit      =   0.60 sec*proc (1 test)

Total Test time (real) =   9.61 sec
END
"""
# Uses a processor for a second of its time, as a compiler does.
BUSY = f"""#!{sys.executable}
import sys, time
while "--build" in sys.argv and time.process_time() < 1:
    pass
"""


class Phases(DevTest):
    def setUp(self):
        super().setUp()
        self.everything_is_here()
        (self.state / "junit.xml").write_text(JUNIT.format(more=""))

    def table(self, *arguments):
        """The lines of the table: name to its cells."""
        self.run_of_dev = self.dev("test", *arguments)
        lines = self.run_of_dev.stdout.splitlines()
        self.assertRegex(lines[-1], r"^\d+ passed, \d+ failed, \d+ skipped$")
        begin = next(number for number, line in enumerate(lines) if line.startswith("where the time went"))
        table = lines[begin + 1:lines.index("", begin)]
        return {match["name"].strip(): match["cells"].split()
                for line in table if (match := re.match(r"(?P<name>.{44})(?P<cells>[\d. ]*)$", line))}

    def test_each_phase_is_a_line_and_the_sum_is_the_last(self):
        names = list(self.table())
        self.assertEqual(names, ["packages of the system", "packages of Python", "headers of CUDA", "NCCL"] + [
            f"{preset}: {phase}" for preset in ("release", "asan", "tsan") for phase in ("configure", "compile", "tests")] + ["all"])
        self.assertEqual(self.run_of_dev.stderr, "")

    def test_what_processors_did_is_measured(self):
        self.stand_in("cmake", BUSY)
        table = self.table("--quick")
        took, used = (float(cell) for cell in table["release: compile"])
        self.assertGreaterEqual(used, 0.01)
        self.assertGreaterEqual(took + 0.01, used)
        self.assertGreaterEqual(float(table["all"][1]), used)

    def test_the_labels_of_a_run_stand_below_it(self):
        self.stand_in("ctest", CTEST.replace("#!/bin/bash\n", "#!/bin/bash\n(" + SUMMARY.split("\n", 1)[1] + ")\n", 1))
        table = self.table("--quick")
        self.assertEqual(table["release: stress, 7 tests"], ["10.20"])
        self.assertEqual(table["release: unit, 1 tests"], ["0.01"])

    def test_a_phase_that_fails_stands_in_it_too(self):
        self.stand_in("cmake", '#!/bin/bash\n[[ "$*" != *--build*build/asan* ]]\n')
        table = self.table()
        self.assertIn("asan: compile", table)
        self.assertNotIn("asan: tests", table)
        self.assertIn("tsan: tests", table)

    def test_the_next_preset_is_built_while_tests_run_and_no_longer(self):
        for name in ("nice", "setsid", "grep", "sleep"):
            (self.state / "bin" / name).symlink_to(shutil.which(name))
        self.stand_in("cmake", """#!/bin/bash
case "$*" in
  *--build*) if grep -q "run ctest" "$STATE/order"; then echo "ahead $BASHPID $*" >>"$STATE/order"; exec sleep 600; fi ;;
esac
""")
        (self.state / "order").write_text("")
        self.stand_in("ctest", CTEST.replace("#!/bin/bash\n", """#!/bin/bash
[[ "$*" != *build/release* ]] || { echo "run ctest" >>"$STATE/order"; until grep -q ahead "$STATE/order"; do sleep 0.1; done; cp "$STATE/order" "$STATE/seen"; : >"$STATE/order"; }
""", 1))
        run = self.dev("test")
        self.assertEqual((run.returncode, run.stdout.splitlines()[-1]), (0, "3 passed, 0 failed, 3 skipped"), run.stdout)
        _, ahead = (self.state / "seen").read_text().splitlines()
        self.assertIn("--build " + str(self.tree / "build" / "asan"), ahead)
        while Path("/proc", ahead.split()[1]).exists():  # it was told to end
            time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
