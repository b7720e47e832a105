#!/usr/bin/env python3
"""Do the benchmark tools judge as documented? Made-up measurements go in, known verdicts come out."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "scripts"))

import bench_instructions  # noqa: E402
import bench_measure  # noqa: E402
import bench_rows  # noqa: E402
import bench_table  # noqa: E402
from bench_measure import Measures, class_of  # noqa: E402
from bench_rows import Part, Row  # noqa: E402

N, F, S = 57.0, 270.0, 23.0


def run_of(case, value, before=N, after=None, **figures):
    return {"name": f"{case}/iterations:1/manual_time", "run_type": "iteration", "iterations": 1, "value": value,
            "c2c_before_ns": before, "c2c_after_ns": before if after is None else after, **figures}


def measured(*runs, disturbed=False):
    measures = Measures()
    measures.add({"benchmarks": list(runs)}, disturbed)
    return measures


def times(count, *arguments, **more):
    return [run_of(*arguments, **more) for _ in range(count)]


def half(m):
    return m.median("q/bus") / m.median("q/raw")


class Classes(unittest.TestCase):
    def test_probes_name_the_class(self):
        self.assertEqual([class_of(ns, ns) for ns in (23, 33, 57, 114, 150, 270)], list("SNNNFF"))

    def test_a_repetition_that_was_moved_has_none(self):
        self.assertIsNone(class_of(57, 270))
        self.assertIsNone(class_of(40, 57))
        self.assertIsNone(class_of(57, 0))

    def test_without_a_second_core_there_is_no_class(self):
        self.assertEqual(class_of(0, 0), "single")

    def test_moved_repetitions_are_left_out(self):
        measures = measured(*times(5, "q/bus", 1.0), *times(9, "q/bus", 100.0, before=N, after=F))
        self.assertEqual(bench_measure.InClass(measures, "N").median("q/bus"), 1.0)
        self.assertEqual(measures.classes(), ["N"])


class Verdicts(unittest.TestCase):
    def part(self, side="<=", target=1.1, **more):
        return Part("a part", "ratio", side, target, half, **more)

    def judge(self, *runs, **more):
        return self.part(**more).judge(measured(*runs))

    def test_met_is_on_the_right_side_or_within_the_noise(self):
        result = self.judge(*times(5, "q/bus", 1.0), *times(5, "q/raw", 1.0))
        self.assertEqual((result["verdict"], result["within_margin"], result["class"]), ("met", False, "N"))
        result = self.judge(*times(5, "q/bus", 1.2), *times(5, "q/raw", 1.0))
        self.assertEqual((result["verdict"], result["within_margin"]), ("met", True))
        self.assertEqual(bench_table.verdict(result), "met, within noise")

    def test_missed_says_by_how_much(self):
        result = self.judge(*times(5, "q/bus", 1.65), *times(5, "q/raw", 1.0))
        self.assertEqual(result["verdict"], "missed")
        self.assertEqual(bench_table.verdict(result), "missed by 50 %")

    def test_more_is_better_where_the_side_says_so(self):
        runs = (*times(5, "q/bus", 0.5), *times(5, "q/raw", 1.0))
        self.assertEqual(self.judge(*runs, side=">=", target=0.9)["verdict"], "missed")
        self.assertEqual(self.judge(*runs, side=">=", target=0.4)["verdict"], "met")
        self.assertEqual(self.judge(*runs, side=">=", target=0.6, margin=0.3)["verdict"], "met")
        self.assertEqual(self.judge(*runs, side=">=", target=0.6, margin=0.0)["verdict"], "missed")

    def test_a_target_of_nothing_is_exact(self):
        part = Part("a part", "calls", "<=", 0, lambda m: m.median("q/bus"), margin=0.0)
        self.assertEqual(part.judge(measured(*times(5, "q/bus", 0.0)))["verdict"], "met")
        missed = part.judge(measured(*times(5, "q/bus", 1.0)))
        self.assertEqual((missed["verdict"], bench_table.verdict(missed)), ("missed", "missed"))
        json.dumps(missed, allow_nan=False)

    def test_four_repetitions_are_not_enough(self):
        result = self.judge(*times(4, "q/bus", 1.0), *times(5, "q/raw", 1.0))
        self.assertEqual(result["verdict"], "inconclusive")
        self.assertIn("q/bus: 4 of 5", result["reason"])

    def test_classes_are_not_mixed(self):
        runs = (*times(5, "q/bus", 5.0, before=F), *times(5, "q/raw", 1.0, before=N))
        self.assertEqual(self.judge(*runs)["verdict"], "inconclusive")
        self.assertEqual(self.judge(*runs, by_class=False)["verdict"], "missed")

    def test_both_classes_must_hold(self):
        runs = (*times(5, "q/bus", 1.0), *times(5, "q/raw", 1.0), *times(5, "q/bus", 9.0, before=F),
                *times(5, "q/raw", 1.0, before=F))
        result = self.judge(*runs)
        self.assertEqual((result["verdict"], result["class"], result["value"]), ("missed", "F", 9.0))

    def test_threads_of_one_core_are_not_judged(self):
        result = self.judge(*times(5, "q/bus", 9.0, before=S), *times(5, "q/raw", 1.0, before=S))
        self.assertEqual(result["verdict"], "inconclusive")

    def test_one_odd_repetition_changes_nothing(self):
        result = self.judge(*times(5, "q/bus", 1.0), *times(2, "q/bus", 99.0), *times(5, "q/raw", 1.0))
        self.assertEqual((result["verdict"], result["value"]), ("met", 1.0))

    def test_what_was_disturbed_is_not_judged(self):
        measures = measured(*times(9, "q/bus", 1.0), *times(9, "q/raw", 1.0), disturbed=True)
        self.assertEqual(self.part().judge(measures)["verdict"], "inconclusive")

    def test_an_absent_peer_is_skipped_by_name(self):
        result = self.judge(*times(5, "q/bus", 1.0))
        self.assertEqual((result["verdict"], result["reason"]), ("skipped", "q/raw was not built"))

    def test_a_target_that_the_bare_reference_misses_is_not_held_against_us(self):
        part = Part("p", "c2c", "<=", 1.5, lambda m: m.median("q/bus"), floor=lambda m: m.median("q/raw"))
        runs = times(5, "q/bus", 3.0)
        self.assertEqual(part.judge(measured(*runs, *times(5, "q/raw", 2.0)))["verdict"], "skipped")
        self.assertEqual(part.judge(measured(*runs, *times(5, "q/raw", 1.2)))["verdict"], "missed")

    def test_two_modes_are_uneven(self):
        measures = measured(*times(5, "q/bus", 1.0), *times(7, "q/bus", 4.0))
        self.assertEqual(bench_measure.InClass(measures, "N").evenness("q/bus"), 0.25)


class Rows(unittest.TestCase):
    def row(self, *targets, **more):
        parts = tuple(Part(str(target), "ratio", "<=", target, half) for target in targets)
        return Row("x", "a question", parts, **more)

    MEASURED = measured(*times(5, "q/bus", 2.0), *times(5, "q/raw", 1.0))

    def test_the_worst_part_is_the_rows_value(self):
        row = self.row(4, 1).judge(self.MEASURED)
        self.assertEqual((row["verdict"], row["value"], row["target"]), ("missed", 2.0, "<= 1"))

    def test_a_row_is_met_when_nothing_is_in_its_way(self):
        self.assertEqual(self.row(4, 3).judge(self.MEASURED)["verdict"], "met")

    def test_a_row_of_skipped_parts_is_inconclusive(self):
        self.assertEqual(self.row(4).judge(Measures())["verdict"], "inconclusive")

    def test_exit_status(self):
        def status(*verdicts, faults=()):
            return bench_rows.exit_status([{"verdict": verdict} for verdict in verdicts], faults)
        self.assertEqual(status("met", "met"), 0)
        self.assertEqual(status("met", "inconclusive"), 3)
        self.assertEqual(status("inconclusive", "missed"), 1)
        self.assertEqual(status("met", faults=["q/bus: events were lost"]), 1)

    def test_what_has_no_class_stands_beside_every_class(self):
        measures = measured(*times(5, "q/bus", 2.0), *times(5, "q/bus", 9.0, before=F),
                            *times(5, "python/fire", 100.0, before=0))
        for placed, value in (("N", 50.0), ("F", 100.0 / 9)):
            m = bench_measure.InClass(measures, placed)
            self.assertAlmostEqual(m.median("python/fire") / m.median("q/bus"), value)

    def test_stalls_in_half_of_the_repetitions_are_not_the_lanes_tail(self):
        case = "latency/bus_ring/per_second:100000"
        measures = measured(*times(5, case, 100.0, p50=100.0, p90=120.0), *times(5, case, 100.0, p50=110.0, p90=90000.0))
        self.assertEqual(bench_rows.tail(bench_measure.InClass(measures, "N"), case), 1.2)

    def test_only_peers_that_slept_are_parking_peers(self):
        def best(sleeps_of_blocking):
            return bench_rows.parking(bench_measure.InClass(measured(
                *times(5, "latency/mutex_condvar/per_second:100000", 9000.0, sleeps_per_event=1.0),
                *times(5, "latency/blocking_moodycamel/per_second:100000", 250.0, sleeps_per_event=sleeps_of_blocking),
            ), "N"))
        self.assertEqual(best(1.0), 250.0)
        self.assertEqual(best(0.0), 9000.0)
        with self.assertRaises(bench_measure.Missing):
            bench_rows.parking(bench_measure.InClass(measured(
                *times(5, "latency/mutex_condvar/per_second:100000", 9000.0, sleeps_per_event=0.0)), "N"))

    def test_on_a_slow_machine_only_the_ratio_of_a_compilation_counts(self):
        def verdicts(functional, publishes):
            row = next(row for row in bench_rows.ROWS if row.id == "14")
            result = row.judge(measured(*times(5, "headers/functional", functional, before=0), *times(5, "headers/publishes", publishes, before=0),
                                        *times(5, "headers/subscribes", 3.9 * functional, before=0)))
            return result["verdict"], [part["verdict"] for part in result["parts"][:2]]
        self.assertEqual(verdicts(0.2, 0.39), ("met", ["met", "met"]))
        self.assertEqual(verdicts(0.2, 0.6), ("missed", ["missed", "missed"]))
        self.assertEqual(verdicts(0.6, 1.1), ("met", ["met", "skipped"]))
        self.assertEqual(verdicts(0.6, 1.8), ("missed", ["missed", "skipped"]))

    def test_the_promised_rows_are_all_there(self):
        self.assertEqual([row.id for row in bench_rows.ROWS],
                         "1 2a 2b 2c 3 4 4b 5a 5b 6a 6b 7 8a 8b 9 10a 10b 10c 10d 10e 10f 10g 11a 11b 11c 11d 11e 12g 12h 12i 12j 12k 13a 13b 13c 13d 14".split())
        self.assertGreater(len(bench_rows.judged_cases()), 50)


class OnPaper(unittest.TestCase):
    SCRIPT = str(ROOT / "bench" / "scripts" / "many_cores_on_paper.py")

    def rows(self, *words):
        run = subprocess.run([sys.executable, self.SCRIPT, "--json", *words], capture_output=True, text=True, check=True)
        return json.loads(run.stdout)

    def test_what_bends_first_is_what_is_full_at_the_smallest_rate(self):
        for row in self.rows():
            heavy = {name: rate for name, rate in row["full_at"].items() if "lone" not in name and "park" not in name}
            self.assertEqual(heavy[row["first"]], min(heavy.values()))
            self.assertEqual(row["publishers"] + row["workers"], row["cores"])

    def test_dearer_lines_and_callbacks_fill_everything_earlier(self):
        for more in (["--far", "304", "--near", "64", "--socket", "600"], ["--callback", "1000"]):
            for row, dear in zip(self.rows(), self.rows(*more)):
                self.assertTrue(all(dear["full_at"][name] <= rate for name, rate in row["full_at"].items()))

    def test_times_that_cannot_be_are_refused(self):
        run = subprocess.run([sys.executable, self.SCRIPT, "--near", "-1"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn("--near wants a number above 0", run.stderr)


class Instructions(unittest.TestCase):
    def test_calls_are_part_of_the_function_that_makes_them(self):
        report = """events: Ir
fn=count_publish
16 10
+3 5
calls=4 40
* 100

fn=engine::push
40 100

fn=(7) count_dispatch
8 2
calls=1 9
-2 30
"""
        self.assertEqual(bench_instructions.inclusive(report), {"publish": 115, "dispatch": 32})

    def test_two_percent_and_one_instruction_are_allowed(self):
        changed = bench_instructions.compare
        self.assertEqual(changed({"a": 101.9, "b": 7.9}, {"a": 100.0, "b": 7.0}), [])
        self.assertEqual(len(changed({"a": 102.1}, {"a": 100.0})), 1)
        self.assertEqual(len(changed({"a": 97.9}, {"a": 100.0})), 1)
        self.assertEqual(len(changed({"b": 8.1}, {"b": 7.0})), 1)
        self.assertEqual(changed({"a": 1.0}, {"b": 1.0}), ["a: counted only", "b: recorded only"])

    def test_without_valgrind_or_a_record_it_is_skipped(self):
        command = [sys.executable, str(ROOT / "bench" / "scripts" / "bench_instructions.py"), "program", "GNU-0", "/nowhere"]
        for path in ("/nowhere", os.environ["PATH"]):
            run = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": path})
            self.assertEqual(run.returncode, 77, run.stdout + run.stderr)
            self.assertTrue(run.stdout.startswith("skipped: "), run.stdout)


class Compare(unittest.TestCase):
    """bench/scripts/compare_bench on two made-up results."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringmain-bench-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name, verdict="met", **values):
        measures = Measures()
        for question, figures in values.items():
            measures.add({"benchmarks": [run_of(f"{question}/bus", value) for value in figures]})
        path = self.folder / name
        path.write_text(json.dumps({"rows": [{"id": "1", "question": "a question", "verdict": verdict}],
                                    "machine": {"cpu": "made up"}, "cases": measures.summary()}))
        return path

    def compare(self, before, after):
        return subprocess.run([sys.executable, str(ROOT / "bench" / "scripts" / "compare_bench"), str(before), str(after)],
                              capture_output=True, text=True, check=False)

    def test_the_same_is_no_change(self):
        run = self.compare(self.write("a", wake=[10, 11, 12, 13, 14]), self.write("b", wake=[11, 10, 12, 14, 13]))
        self.assertEqual((run.returncode, run.stdout), (0, "1 compared, 0 changed beyond the noise\n"))

    def test_slower_is_worse(self):
        run = self.compare(self.write("a", wake=[10, 10, 10, 10, 10]), self.write("b", wake=[13, 13, 13, 13, 13]))
        self.assertEqual(run.returncode, 1)
        self.assertIn("worse   wake/bus [N]: 10 to 13 (+30 %)", run.stdout)

    def test_more_events_a_second_are_better(self):
        run = self.compare(self.write("a", throughput=[10] * 5), self.write("b", throughput=[20] * 5))
        self.assertEqual(run.returncode, 0)
        self.assertIn("better  throughput/bus", run.stdout)
        run = self.compare(self.write("a", throughput=[20] * 5), self.write("b", throughput=[10] * 5))
        self.assertEqual(run.returncode, 1)

    def test_what_overlaps_is_noise(self):
        run = self.compare(self.write("a", wake=[10, 10, 10, 30, 30]), self.write("b", wake=[10, 20, 20, 20, 30]))
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_throughput_may_move_by_more(self):
        run = self.compare(self.write("a", throughput=[100] * 5), self.write("b", throughput=[80] * 5))
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_four_repetitions_say_nothing(self):
        run = self.compare(self.write("a", wake=[10] * 4), self.write("b", wake=[90] * 9))
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_a_row_that_is_now_missed_is_worse(self):
        run = self.compare(self.write("a", wake=[1] * 5), self.write("b", verdict="missed", wake=[1] * 5))
        self.assertEqual(run.returncode, 1)
        self.assertIn("row 1, a question: met, now missed", run.stdout)

    def test_what_is_no_result_gets_one_sentence(self):
        good, bad = self.write("a", wake=[1] * 5), self.folder / "bad"
        bad.write_text("{}")
        for other in (bad, self.folder / "nowhere"):
            run = self.compare(good, other)
            self.assertEqual((run.returncode, run.stderr.count("\n")), (2, 1))


if __name__ == "__main__":
    unittest.main()
