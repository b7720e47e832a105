#!/usr/bin/env python3
"""Can each row of models.txt go red? Tiny tables whose outcome is known, given to run_models.py.

Arguments are handed on to run_models.py (--work, --spin, --cc, --cxx, --relacy); they decide which
searchers are here. Without Spin and without Relacy the tests that need one are skipped.
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUNNER = pathlib.Path(__file__).resolve().parent / "run_models.py"
TOOLS = sys.argv[1:]
NO_TOOLS = ["--spin=", "--cc=", "--cxx=", "--relacy="]

COUNTER = """
int x;
active proctype count() { do :: x < LIMIT -> x++ :: else -> break od; assert(x == WANTED) }
"""
SLEEPER = "bool woken; active proctype sleeper() { (woken) }\n"
SCHEDULES = """
#include "tests/model/relacy_search.hpp"
struct Test : rl::test_suite<Test, 2> {
  static constexpr int kScenes = 1;
  rl::atomic<int> ready;
  rl::var<int> data;
  void before() { ready($).store(0, rl::mo_relaxed); data($) = 0; }
  void thread(unsigned i) {
    if (i == 0) { data($) = 1; ready($).store(1, ORDER); }
    else if (ready($).load(rl::mo_acquire)) { RL_ASSERT(data($) == 1); }
  }
};
int main(int argc, char** argv) { return search_scenes<Test>(argc, argv); }
"""


def has(option):
    given = [t.split("=", 1)[1] for t in TOOLS if t.startswith(f"--{option}=")]
    return not given or given[-1] != ""


class RowTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def play(self, row, tools=None):
        """Exit code and output of a table that is this one row."""
        table = self.folder / "models.txt"
        table.write_text(row + "\n")
        (self.folder / "counter.pml").write_text(COUNTER)
        (self.folder / "sleeper.pml").write_text(SLEEPER)
        (self.folder / "schedules.cpp").write_text(SCHEDULES)
        done = subprocess.run(
            [sys.executable, RUNNER, "all", table, "--long", *(TOOLS if tools is None else tools),
             "--work", self.folder / "rows"],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def expect(self, code, text, row, tools=None):
        got, output = self.play(row, tools)
        self.assertEqual(got, code, output)
        self.assertIn(text, output)


@unittest.skipUnless(has("spin") and has("cc"), "Spin is not installed (Debian package spin)")
class SpinRowTest(RowTest):
    def test_a_holding_model_with_the_right_count_is_green(self):
        self.expect(0, "holds 10", "model | holds 10 | counter.pml | -DLIMIT=3 -DWANTED=3")

    def test_a_changed_number_of_states_is_red(self):
        self.expect(1, "the search went over 10",
                    "model | holds 9 | counter.pml | -DLIMIT=3 -DWANTED=3")

    def test_an_error_in_a_holding_model_is_red(self):
        self.expect(1, "this variant must hold",
                    "model | holds 10 | counter.pml | -DLIMIT=3 -DWANTED=2")

    def test_a_caught_mutant_is_green(self):
        self.expect(0, "fails assertion violated",
                    "model | fails assertion violated | counter.pml | -DLIMIT=3 -DWANTED=2")

    def test_a_mutant_that_is_not_caught_is_red(self):
        self.expect(1, "this mutant is not caught",
                    "model | fails assertion violated | counter.pml | -DLIMIT=3 -DWANTED=3")

    def test_a_mutant_caught_for_another_reason_is_red(self):
        self.expect(1, "caught for another reason",
                    "model | fails assertion violated | sleeper.pml")

    def test_a_model_that_spin_refuses_is_red(self):
        self.expect(1, "spin -a failed", "model | fails invalid end state | counter.pml")

    def test_a_search_that_does_not_compile_is_red(self):
        self.expect(1, "compiling pan.c failed",
                    "model | fails invalid end state | sleeper.pml | | -DSAFETY -fno-such-flag")

    def test_a_search_that_is_not_deep_enough_is_red(self):
        row = "| counter.pml | -DLIMIT=2000 -DWANTED=2000 | | -m1000"
        self.expect(1, "the search is not complete", f"model | holds 1000 {row}")
        self.expect(1, "the search is not complete", f"model | fails assertion {row}")

    def test_a_search_that_runs_out_of_memory_is_red(self):
        self.expect(1, "the search is not complete",
                    "model | holds 300001 | counter.pml | -DLIMIT=100000 -DWANTED=100000"
                    " | -DSAFETY -DMEMLIM=1")


@unittest.skipUnless(has("relacy"), "Relacy is not installed (Debian package relacy-dev)")
class RelacyRowTest(RowTest):
    def test_only_what_holds_over_as_many_schedules_as_the_table_says_is_green(self):
        row = "schedules.cpp | -DORDER=rl::mo_release | | 1"
        name = "model.schedules.ORDER=rl::mo_release"
        got, output = self.play(f"model | holds 100 | {row} 100\n"
                                f"model | holds 100 | {row} 50 fence\n"
                                f"model | fails DATA RACE | {row} 100 no_heavy\n"
                                f"model | fails DATA RACE | {row}2 100 no_light")
        self.assertEqual(got, 1, output)
        self.assertIn(f"{name}: holds 100", output)
        self.assertIn(f"{name}.fence: the search went over 50", output)
        self.assertIn(f"{name}.no_heavy: this mutant is not caught", output)
        self.assertIn(f"{name}.no_light: the search broke off", output)
        self.assertIn("no scene 2", output)

    def test_a_mutant_is_green_for_the_right_reason_only(self):
        row = "schedules.cpp | -DORDER=rl::mo_relaxed | | 1 100"
        name = "model.schedules.ORDER=rl::mo_relaxed"
        got, output = self.play(f"model | fails DATA RACE | {row}\n"
                                f"model | fails DEADLOCK | {row} fence\n"
                                f"model | holds 100 | {row} no_heavy")
        self.assertEqual(got, 1, output)
        self.assertIn(f"{name}: fails scene 1: DATA RACE", output)
        self.assertIn(f"{name}.fence: caught for another reason", output)
        self.assertIn(f"{name}.no_heavy: this variant must hold", output)
        self.expect(0, "DATA RACE", f"model | fails DATA RACE | {row}")

    def test_a_mutant_that_does_not_compile_is_red(self):
        self.expect(1, "compiling schedules.cpp failed",
                    "model | fails DATA RACE | schedules.cpp | -DORDER=nothing | | 1 100")


class TableTest(RowTest):
    def test_an_absent_searcher_is_a_skip_with_its_reason(self):
        self.expect(77, "skipped: spin is not installed (Debian package spin). model.sleeper",
                    "model | fails invalid end state | sleeper.pml", NO_TOOLS)
        self.expect(77, "skipped: Relacy is not installed (Debian package relacy-dev).",
                    "model | fails DATA RACE | schedules.cpp", NO_TOOLS)

    def test_a_row_that_says_nothing_checkable_is_refused(self):
        for row, complaint in (
                ("model | holds | sleeper.pml", "say 'holds COUNT' or 'fails TEXT'"),
                ("model | holds many | sleeper.pml", "no count"),
                ("model | fails | sleeper.pml", "say 'holds COUNT' or 'fails TEXT'"),
                ("modle | fails x | sleeper.pml", "label 'modle'"),
                ("model | fails x | sleeper", "neither NAME.pml nor NAME.cpp"),
                ("model | fails x | sleeper.pml\nmodel | fails y | sleeper.pml", "a second row"),
                ("model | fails x | s.cpp | | | 1 9\nmodel | fails x | s.cpp | | -O1 | 1 9 fence",
                 "a group is compiled once"),
                ("# nothing", "has no rows")):
            with self.subTest(row=row):
                self.expect(1, complaint, row)


if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(not result.wasSuccessful())
