#!/usr/bin/env python3
"""Does group nccl pass over the NCCL that stands in, and is each row refuted where NCCL is another than it says?

usage: nccl_test.py TESTCASE, with the build in $GPU_BUILD. The stand-in tells ringmain's real plugin, by the model of NCCL's front end.
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import nccl_rows
import run_tests
import tests_of_nccl
from cases import main
from nccl_rows import ONE, SOCKETS, TWO
from place import Failed, Place, Skipped

BUILD = Path(os.environ["GPU_BUILD"])
NAMES = [name for name, (group, _, _) in run_tests.TESTS.items() if group == "nccl"]

# What the stand-in does wrong: where, which row is refuted, by what it says.
WRONG = {"alone": (ONE, "a collective of one rank", "group_api: 5, and not 0"),
         "launch": (ONE, "send and receive to oneself", "launch: 0, and not 5"),
         "replays": (ONE, "a graph that is launched", "group: 0, and not 1000"),
         "nothing": (TWO, "a collective of no elements", "group_api: 5, and not 0"),
         "broadcast": (TWO, "a broadcast", "launch: 5, and not 0"),
         "all_to_all": (SOCKETS, "an all-to-all", "api: 15, and not 20")}
WINDOWS = {"FAKE_NCCL_WINDOWS": "1"}


class NcclTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        if not (BUILD / "bin/gpu-fakes/nccl/libnccl.so.2").exists() or not (BUILD / "bin/gpu-fakes/nccl_calls").exists():
            self.skipTest("CUDA's headers are not here, so the programs were not built")

    def place(self):
        made = Place(BUILD, self.folder, True)
        self.addCleanup(made.close)
        return made

    def rows(self, over, kernels, cases=None, **variables):
        """{what a row says: [verdict, why]}"""
        place = self.place()
        with mock.patch.dict(os.environ, variables):
            tests_of_nccl.judged(place, over, kernels, cases)
        return {name.split(",")[0]: verdict for name, verdict in place.figures["rows"].items()}

    def test_the_group_passes_over_the_stand_in(self):
        run = subprocess.run(["bash", str(HERE / "run_all.sh"), "--build", str(BUILD), "--no-build", "--fakes", "--group", "nccl", "--output",
                              str(self.folder)], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        *lines, last = [line for line in run.stdout.splitlines() if not line.startswith("#")]
        self.assertEqual([line.split()[:2] for line in lines], [[name, "SKIP" if name == "N8" else "PASS"] for name in NAMES])
        self.assertEqual(last, f"{len(NAMES) - 1} passed, 0 failed, 1 skipped")
        self.assertNotIn("refuted:", run.stdout)
        kept = sorted(path.name for path in self.folder.glob("*.jsonl"))
        self.assertEqual(len(kept), 6, kept)
        self.assertTrue((self.folder / "self.nccl_calls").read_text().startswith("load\n"))

    def test_each_row_has_a_verdict_and_what_is_wrong_refutes_it(self):
        for fault, (over, says, why) in WRONG.items():
            with self.subTest(fault):
                cases = {row.case for row in nccl_rows.ROWS if row.over == over and row.says.startswith(says)}
                rows = self.rows(over, True, sorted(cases), FAKE_NCCL_WRONG=fault)
                ((name, (verdict, text)),) = [one for one in rows.items() if one[0].startswith(says)]
                self.assertEqual((verdict, text), ("refuted", why), name)

    def test_each_situation_has_a_row_with_kernel_channels_and_without(self):
        for over, cases in tests_of_nccl.CASES.items():
            for case in cases:
                asked = {row.kernels for row in nccl_rows.ROWS if (row.over, row.case) == (over, case)}
                self.assertEqual(asked, {True} if case == "abort" else {False, True}, (over, case))

    def test_what_needs_symmetric_memory_is_judged_where_there_is_some(self):
        cases = ("symmetric", "copy_engine", "one_sided")
        old = self.rows(TWO, True, cases, FAKE_NCCL_VERSION="23007", **WINDOWS)
        self.assertEqual({verdict for verdict, _ in old.values()}, {"confirmed"}, old)
        new = self.rows(TWO, True, cases, **WINDOWS)
        self.assertEqual(new["a collective on symmetric memory"], ["not reached", "NCCL took its usual way: 5 operations"])
        self.assertEqual(new["a put with a signal"][0], "confirmed")
        self.assertEqual(self.rows(TWO, True, cases)["a put with a signal"], ["not reached", "ncclCommWindowRegister answered 5"])

    def test_two_ranks_are_skipped_before_2_30(self):
        with mock.patch.dict(os.environ, {"FAKE_NCCL_VERSION": "22809"}):
            with self.assertRaises(Skipped) as why:
                tests_of_nccl.n1(self.place())
            self.assertIn("this is NCCL 22809", str(why.exception))
            self.assertIn("rows: 6 confirmed", tests_of_nccl.n0(self.place()))  # by ABI v5

    def test_a_case_that_the_program_did_not_come_to_is_not_reached(self):
        row = next(row for row in nccl_rows.ROWS if row.case == "self")
        self.assertEqual(nccl_rows.judge(row, 23203, None, [])[0], "not reached")
        self.assertEqual(nccl_rows.judge(row, 23203, {"calls": 5, "result": 0}, [])[0], "refuted")

    def test_what_belongs_to_no_operation_is_reported(self):
        for wrong, says in (("", "20 of 20 kernel channels and proxies belong to an operation; ends by {'kernel_channels': 10}"),
                            ("parents", "0 of 20 kernel channels")):
            with mock.patch.dict(os.environ, {"FAKE_NCCL_WRONG": wrong}):
                _, events = tests_of_nccl.listened(self.place(), ONE, ("self",), True)
            self.assertIn(says, tests_of_nccl.belonging(events))

    def test_events_that_are_lost_fail(self):
        _, events = tests_of_nccl.listened(self.place(), ONE, ("self",), True)
        tests_of_nccl.must_balance(events)
        lost = next(one for one in events if one["channel"] == "nccl.operation")
        with self.assertRaises(Failed):
            tests_of_nccl.must_balance([one for one in events if one is not lost])
        with self.assertRaises(Failed):
            tests_of_nccl.must_balance([one for one in events if one.get("state") != "attached"])

    def test_a_reload_that_is_not_told_of_its_end_fails(self):
        with mock.patch.dict(os.environ, {"FAKE_NCCL_WRONG": "finalize"}), self.assertRaises(Failed):
            tests_of_nccl.n4(self.place())

    def test_ids_that_do_not_agree_fail(self):
        _, events = tests_of_nccl.listened(self.place(), ONE, ("self",), True)
        issued = [one for one in events if one["channel"] == "collective.issued"]
        operations = [one for one in events if one["channel"] == "nccl.operation"]
        self.assertIn("10 of NCCL's operations are 10", tests_of_nccl.agreement(issued, operations))
        for wrong in ((issued[1:], operations), ([*issued, issued[0]], operations), ([], operations), (issued, [])):
            with self.assertRaises(Failed):
                tests_of_nccl.agreement(*wrong)

    def test_without_nccl_or_gpu_it_is_skipped_with_a_sentence(self):
        place = self.place()
        for variables, says in (({"GPU_NCCL": "/nowhere/libnccl.so.2"}, "there is no NCCL"), ({"FAKE_CUDA_DEVICES": "0"}, "there is no GPU that CUDA can use")):
            with self.assertRaises(Skipped) as why:
                tests_of_nccl.played(place, ONE, ("self",), environment=variables)
            self.assertIn(says, str(why.exception))

    def test_the_real_library_is_the_one_that_is_named(self):
        found = os.environ.get("RINGMAIN_NCCL_FOUND", "")
        if not (Path(found) / "lib/libnccl.so.2").exists():
            self.skipTest("NCCL's library is not here")
        place = self.place()
        run = place.run(place.program("nccl_calls"), "version", GPU_NCCL=f"{found}/lib/libnccl.so.2")
        self.assertGreaterEqual(place.answer_of(run)["version"], 22800)

    def test_a_rank_that_fails_ends_the_others(self):
        place = self.place()
        waits = ["sh", "-c", "exec sleep 1000"]
        with self.assertRaises(Failed) as failed:
            tests_of_nccl.run_ranks(place, [waits, ["sh", "-c", "echo no room >&2; exit 5"]], {})
        self.assertEqual(str(failed.exception), "rank 1 ended with 5: no room")

    def test_a_recording_is_heard_as_what_it_is_of(self):
        place = self.place()
        tests_of_nccl.leave_golden(place, tests_of_nccl.recorder(place, 23203))
        calls, lived = self.folder / "self.nccl_calls", (self.folder / "self.nccl_events").read_text().splitlines()
        self.assertIn("5 operation group=self rank=0 func=Send count=524288 dtype=ncclFloat32", "\n".join(lived))
        text = calls.read_text()
        self.assertEqual(tests_of_nccl.replayed(place, calls), lived)
        for old, new in (("func=Send", "func=Recv"), ("channels=2", "channels=3"), ("type=40", "type=4000000")):
            with self.subTest(new):
                self.assertIn(old, text)
                calls.write_text(text.replace(old, new, 1))
                self.assertNotEqual(tests_of_nccl.replayed(place, calls), lived)

    def test_what_was_recorded_with_a_gpu_is_heard_as_it_was_there(self):
        recordings = sorted((HERE / "goldens").glob("*.nccl_calls"))
        if not recordings:
            self.skipTest("no recording of NCCL's calls from a GPU yet")
        for recording in recordings:
            with self.subTest(recording.name):
                self.assertEqual(tests_of_nccl.replayed(self.place(), recording), recording.with_suffix(".nccl_events").read_text().splitlines())


if __name__ == "__main__":
    sys.exit(main())
