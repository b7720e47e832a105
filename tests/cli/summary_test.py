#!/usr/bin/env python3
"""Does `ringmain summary` count what is in lines of events, and name what it could not read?

usage: summary_test.py TESTCASE, with the program in $RINGMAIN_BINARY
"""

import gzip
import json
import math
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import unittest
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from cases import main

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("RINGMAIN_BINARY", str(ROOT / "build/release/bin/ringmain"))
SANITIZED = bool(os.environ.get("RINGMAIN_SANITIZED"))
TRACES = ROOT / "examples/traces"
ERROR = 1 / 128  # what the page says of quantiles


def line(channel, time_ns=1, origin="a" * 16, publisher=1, sequence=1, rank=None, launcher="torchrun", **fields):
    """One event as a sink writes it; with `rank` the first line of its process."""
    event = {"channel": channel, "time_ns": time_ns, "publisher": publisher, "sequence": sequence, "origin": origin}
    if rank is not None:
        event["origin_process"] = {"host": "n", "pid": 7, "program": "train", "rank": rank, "launcher": launcher,
                                   "monotonic_ns": 0, "realtime_ns": 5}
    return (json.dumps({**event, **fields}, separators=(",", ":"), ensure_ascii=False) + "\n").encode()


class SummaryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, name, *lines):
        path = self.folder / name
        path.write_bytes(b"".join(lines))
        return path

    def run_it(self, *arguments, status=0, **options):
        run = subprocess.run([BINARY, "summary", *map(str, arguments)], capture_output=True, timeout=150, check=False, **options)
        self.said = run.stderr.decode()
        self.assertEqual(run.returncode, status, self.said)
        return run.stdout.decode()

    def told(self, *arguments, **options):
        return json.loads(self.run_it("--json", *arguments, **options))

    def rows(self, *arguments, **options):
        told = self.told(*arguments, **options)
        return {(row["channel"], row["operation"], *([row["rank"]] if "rank" in row else []),
                 *([row["step"]] if "step" in row else [])): row for row in told["rows"]}

    def near(self, measure, values):
        values = sorted(values)
        self.assertEqual([measure[key] for key in ("count", "sum", "min", "max")],
                         [len(values), sum(values), values[0], values[-1]])
        for key, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
            exact = values[max(math.ceil(share * len(values)), 1) - 1]
            self.assertLessEqual(abs(measure[key] - exact), exact * ERROR, key)


class SummaryCountsTest(SummaryTest):
    """Counts, times and sizes are those of the lines."""

    def test_a_recorded_training_is_counted_as_by_another_program(self):
        paths, want = [], defaultdict(lambda: [0, defaultdict(list)])
        for rank in (0, 1):
            path = self.folder / f"{rank}.jsonl"
            subprocess.run([BINARY, "replay", "--speed", "max", "--quiet", "--sink", f"json_lines:{path}",
                            TRACES / f"ddp_gloo_rank{rank}.json.gz"], check=True, timeout=150,
                           env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)})
            paths.append(path)
            for event in map(json.loads, path.read_bytes().splitlines()):
                entry = want[event["channel"], event.get("op") or event.get("name") or "", rank]
                entry[0] += 1
                for key in ("duration_ns", "queued_ns", "bytes"):
                    if event.get(key, 0) > 0:
                        entry[1][key].append(event[key])
        told = self.told("--by", "rank", *paths)
        self.assertEqual(told["events"], 29250)
        self.assertEqual([process["rank"] for process in told["processes"]], [0, 1])
        self.assertEqual(told["losses"]["missing"], 0)
        self.assertEqual(told["open"]["count"], 0)
        self.assertEqual(told["relative_error"], ERROR)
        rows = {(row["channel"], row["operation"], row["rank"]): row for row in told["rows"]}
        self.assertEqual(set(rows), set(want))
        for key, (events, measures) in want.items():
            with self.subTest(key):
                self.assertEqual(rows[key]["events"], events)
                self.assertEqual(set(rows[key]["measures"]) - {"since_issued_ns"}, set(measures))
                for name, values in measures.items():
                    self.near(rows[key]["measures"][name], values)
        counts = json.loads((TRACES / "counts.json").read_text())["ddp_gloo_rank0.json.gz"]["collectives"]
        self.assertEqual({f"gloo:{op}": row["events"] for (channel, op, rank), row in rows.items()
                          if channel == "collective.completed" and rank == 0}, counts)

    def test_a_launcher_is_no_rank(self):
        path = self.file("a", line("x", rank=0, launcher="none", duration_ns=9), line("x", origin="b" * 16, rank=0, duration_ns=5),
                         line("x", origin="c" * 16, rank=1, duration_ns=7))
        self.assertEqual([process["rank"] for process in self.told(path)["processes"]], [None, 0, 1])
        self.assertEqual(self.rows("--by", "rank", path).keys(), {("x", "", None), ("x", "", 0), ("x", "", 1)})
        self.assertEqual(self.rows(path)["x", ""]["measures"]["duration_ns"]["slowest_rank"], 1)
        self.assertIn("3 processes in 2 ranks\n  no rank  train on n, pid 7: 1 event", self.run_it(path))

    def test_quantiles_of_many_values_are_within_their_error(self):
        chance = random.Random(4)
        values = [int(chance.lognormvariate(12, 3)) + 1 for _ in range(20_000)]
        path = self.file("a", *(line("x", op="y", took_ns=value, bytes=value * 7, sequence=n)
                                for n, value in enumerate(values, 1)))
        measures = self.rows(path)["x", "y"]["measures"]
        self.near(measures["took_ns"], values)
        self.near(measures["bytes"], [value * 7 for value in values])

    def test_ranks_are_told_together_with_the_slowest_of_them_or_apart(self):
        lines = [line("collective.completed", origin=f"{rank:016x}", sequence=n, op="all_reduce", duration_ns=took + n,
                      rank=rank if n == 1 else None)
                 for rank, took in ((0, 100), (1, 900), (2, 300)) for n in (1, 2, 3)]
        path = self.file("a", *lines)
        row = self.rows(path)["collective.completed", "all_reduce"]
        self.assertEqual(row["events"], 9)
        measure = row["measures"]["duration_ns"]
        self.assertEqual((measure["slowest_rank"], measure["fastest_p50"]), (1, 102))
        self.assertAlmostEqual(measure["slowest_p50"], 902, delta=902 * ERROR)
        self.assertIn("1: 901 ns (8.83 x)", self.run_it(path))
        rows = self.rows("--by", "rank", path)
        self.assertEqual([rows["collective.completed", "all_reduce", rank]["measures"]["duration_ns"]["min"]
                          for rank in (0, 1, 2)], [101, 901, 301])
        self.assertIn("all_reduce rank 1", self.run_it("--by", "rank", path))

    def test_a_rank_is_known_wherever_its_first_line_lies_and_else_is_said_to_be_unknown(self):
        path = self.file("a", line("x"), line("x", sequence=2), line("x", sequence=3, rank=4), line("x", origin="b" * 16))
        self.assertEqual({key: row["events"] for key, row in self.rows("--by", "rank", path).items()},
                         {("x", "", 4): 3, ("x", "", None): 1})
        self.assertIn("whose first line is in no file", self.run_it(path))

    def test_steps_are_told_apart_where_that_is_asked_for(self):
        lines = [line("train.step", edge="end", step=step, phase="", micro_batch=0, took_ns=step * 10, sequence=step)
                 for step in (1, 2)]
        lines += [line("x", in_step=2, publisher=2, sequence=n, took_ns=5) for n in (1, 2)] + [line("x", publisher=3)]
        path = self.file("a", *lines)
        rows = self.rows("--by", "step", path)
        self.assertEqual({key: row["events"] for key, row in rows.items()},
                         {("train.step", "step", 1): 1, ("train.step", "step", 2): 1, ("x", "", 2): 2, ("x", "", None): 1})
        self.assertEqual(rows["x", "", 2]["step_to"], 2)
        self.assertEqual(self.rows(path)["train.step", "step"]["measures"]["took_ns"]["sum"], 30)
        both = self.told("--by", "rank,step", path)
        self.assertTrue(all("rank" in row and "step" in row for row in both["rows"]))
        self.assertEqual(both["step_width"], 1)
        self.assertIn("step 2", self.run_it("--by", "step", path))
        self.assertNotIn("No event says its step", self.run_it("--by", "step", path))
        without = self.file("b", line("x"))
        self.assertIn("No event says its step", self.run_it("--by", "step", without))
        self.assertNotIn("No event says its step", self.run_it(without))

    def test_many_steps_are_told_together_and_none_is_lost(self):
        count = 70_000
        path = self.file("a", *(line("x", in_step=n, sequence=n + 1, took_ns=1) for n in range(count)))
        told = self.told("--by", "step", path)
        self.assertEqual(told["step_width"], 2)
        self.assertEqual(sum(row["events"] for row in told["rows"]), count)
        self.assertEqual({row["step_to"] - row["step"] for row in told["rows"]}, {1})

    def test_points_in_time_and_what_is_not_known_are_no_durations(self):
        path = self.file("a", line("x", began_ns=9, since_ns=9, deadline_ns=9, duration_ns=0, queued_ns=-4, gpu_wait_ns=3,
                                   chunk_bytes=8, bytes=0, nbytes=4, waited_ns=2.5))
        self.assertEqual(set(self.rows(path)["x", ""]["measures"]), {"gpu_wait_ns", "chunk_bytes"})

    def test_the_operation_is_the_first_name_of_a_line_that_is_not_empty(self):
        for fields, want in (({"name": "n", "op": "o"}, "o"), ({"op": "", "func": "f"}, "f"), ({"message": "m", "kind": "k"}, "m"),
                             ({"what": "w", "api": "a"}, "a"), ({"what": "w"}, "w"), ({"op": 3}, ""), ({"name": ["n"]}, "")):
            with self.subTest(fields=fields):
                self.assertEqual(list(self.rows(self.file("a", line("x", **fields)))), [("x", want)])


class SummaryPairsTest(SummaryTest):
    """Issued and ended operations find each other, events that are missing are found."""

    def test_an_operation_and_its_end_are_paired_in_either_order(self):
        first = line("collective.issued", 100, op_id=1, op="all_reduce")
        lines = [first, line("collective.completed", 350, op_id=1, op="all_reduce", publisher=2),
                 line("collective.completed", 900, op_id=2, op="all_reduce", publisher=2, sequence=2),
                 line("collective.issued", 800, op_id=2, op="all_reduce", sequence=2),
                 line("collective.issued", 800, op_id=1, op="all_reduce", origin="b" * 16)]
        rows = self.rows(self.file("a", *lines))
        measure = rows["collective.completed", "all_reduce"]["measures"]["since_issued_ns"]
        self.assertEqual((measure["count"], measure["min"], measure["max"]), (2, 100, 250))

    def test_what_was_issued_and_did_not_end_is_named_by_rank(self):
        lines = [line("collective.issued", 100, op_id=1, op="barrier", rank=3),
                 line("collective.issued", 200, op_id=2, op="all_reduce", sequence=2),
                 line("collective.failed", 900, op_id=1, op="barrier", publisher=2, elapsed_ns=800)]
        path = self.file("a", *lines)
        told = self.told(path)["open"]
        self.assertEqual(told, {"count": 1, "oldest": [{"operation": "all_reduce", "rank": 3, "origin": "a" * 16,
                                                        "op_id": 2, "time_ns": 200}]})
        self.assertRegex(self.run_it(path), r"(?s)1 operation was issued and has no end.*rank 3 +all_reduce, op_id 2, 700 ns before")
        self.assertEqual(self.told(self.file("b", *lines[:2]))["open"]["count"], 0, "without ends nothing is known of them")

    def test_gaps_are_counted_by_channel_and_rank_also_where_lines_are_out_of_order(self):
        kept = [1, 2, 5, 9, 10]
        for order in (kept, kept[::-1], [5, 1, 10, 9, 2]):
            lines = [line("x", sequence=n, rank=2 if n == 1 else None) for n in order] + [line("y", publisher=2, sequence=7)]
            told = self.told(self.file("a", *lines))["losses"]
            self.assertEqual((told["missing"], told["publishers"]), (5, 2))
            self.assertEqual(told["channels"][0]["missing"], 5)
            self.assertEqual((told["channels"][0]["channel"], told["channels"][0]["rank"]), ("x", 2))
            self.assertEqual(told["backward"] > 0, order != kept)

    def test_a_recording_with_lines_taken_out_lacks_just_those(self):
        whole = self.folder / "whole"
        subprocess.run([BINARY, "replay", "--speed", "max", "--quiet", "--sink", f"json_lines:{whole}",
                        TRACES / "ddp_gloo_rank0.json.gz"], check=True, timeout=150)
        lines, chance, last = whole.read_bytes().splitlines(keepends=True), random.Random(1), {}
        for n, text in enumerate(lines):
            event = json.loads(text)
            last[event["publisher"]] = n
        ends = set(last.values()) | {n for n, text in enumerate(lines) if b'"sequence":1,' in text}
        taken = {n for n in chance.sample(range(len(lines)), 500) if n not in ends}
        told = self.told(self.file("some", *(text for n, text in enumerate(lines) if n not in taken)))
        self.assertEqual(told["losses"]["missing"], len(taken))
        self.assertEqual(told["events"], len(lines) - len(taken))

    def test_what_lines_tell_of_losses_is_told(self):
        lines = [line("bus.loss", event_channel="x", mailbox=False, full=3, evicted=0, first_ns=1, last_ns=2),
                 line("bus.loss", event_channel="x", mailbox=False, full=4, evicted=2, sequence=2),
                 line("nccl.plugin", refused=5, filtered=9, publisher=2), line("nccl.plugin", refused=8, publisher=2, sequence=2)]
        path = self.file("a", *lines)
        told = {(one["channel"], one["what"]): one["count"] for one in self.told(path)["losses"]["told"]}
        self.assertEqual(told, {("x", "full"): 7, ("x", "evicted"): 2, ("nccl.plugin", "refused"): 8})
        self.assertIn("x: full 7", self.run_it(path))


class SummaryInputTest(SummaryTest):
    """Every kind of file is read; what cannot be read is named, and the rest counts."""

    def test_lines_that_are_no_events_are_left_out_named_and_counted(self):
        for bad, says in ((b"hello\n", "no JSON object"), (b'{"channel":"x"}\n', '"time_ns"'), (b"\xff\xfe\n", "no JSON"),
                          (line("x")[:-2] + b',"f":[1,]}\n', "no JSON"), (line("x", origin="q"), '"origin"')):
            with self.subTest(bad=bad):
                path = self.file("a", line("x"), bad, b"   \n", line("x", sequence=2))
                told = self.told(path, status=1)
                self.assertEqual((told["events"], told["left_out"]), (2, 1))
                self.assertEqual((told["first_left_out"][0]["file"], told["first_left_out"][0]["line"]), (str(path), 2))
                self.assertIn(says, told["first_left_out"][0]["why"])
                self.assertEqual(len(self.said.splitlines()), 1, self.said)
                self.assertIn(f"ringmain: {path}, line 2: left out: it is no ", self.said)
                self.assertIn("2 events", self.run_it(path, status=1))

    def test_a_torn_last_line_is_said_and_one_that_lacks_only_its_end_counts(self):
        path = self.file("a", line("x"), line("x", sequence=2)[:-9])
        self.assertEqual(self.told(path, status=1)["events"], 1)
        self.assertIn(", line 2: left out: it is torn: ", self.said)
        self.assertEqual(self.told(self.file("b", line("x"), line("x", sequence=2)[:-1]))["events"], 2)

    def test_of_many_bad_lines_the_first_are_named(self):
        path = self.file("a", *[b"{}\n"] * 5000, line("x"))
        self.assertEqual(self.told(path, status=1)["left_out"], 5000)
        self.assertEqual(len(self.said.splitlines()), 11)
        self.assertIn("5,000 lines were left out in all", self.said)

    def test_gzip_a_pipe_and_standard_input_are_read_as_files_are(self):
        lines = [line("x"), line("x", sequence=2)]
        packed = gzip.compress(lines[0]) + gzip.compress(lines[1])
        self.assertEqual(self.told(self.file("a.gz", packed))["events"], 2)
        self.assertEqual(self.told("-", input=b"".join(lines))["events"], 2)
        self.assertEqual(self.told("-", input=packed)["events"], 2)
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["sh", "-c", f'cat "{self.file("b", *lines)}" >"{pipe}"']):
            self.assertEqual(self.told(pipe)["events"], 2)

    def test_of_a_gzip_file_that_was_cut_short_all_is_told_that_is_there(self):
        whole = gzip.compress(b"".join(line("x", sequence=n, text=str(random.Random(n).random())) for n in range(1, 5000)))
        path = self.file("a.gz", whole[:len(whole) // 2])
        told = self.told(path, status=1)
        self.assertGreater(told["events"], 1000)
        self.assertEqual(len(told["faults"]), 1)
        self.assertIn("cut short", self.said)

    def test_a_file_that_is_not_there_does_not_keep_the_others_from_being_told(self):
        path = self.file("a", line("x"))
        told = self.told(path, self.folder / "none", self.folder, status=1)
        self.assertEqual((told["events"], len(told["faults"])), (1, 2))
        self.assertEqual(len(self.said.splitlines()), 2, self.said)
        self.assertEqual(self.run_it(self.folder / "none", status=1), "")

    def test_a_file_that_is_given_twice_is_refused(self):
        path = self.file("a", line("x"))
        (self.folder / "b").symlink_to(path)
        self.assertEqual(self.run_it(path, self.folder / "b", status=1), "")
        self.assertIn("given twice", self.said)

    def test_wrong_calls_get_a_sentence(self):
        path = self.file("a", line("x"))
        for words, says in (([], "wants a file"), (["-", "-"], "more than once"), (["--by", "rnk", path], "did you mean 'rank'?"),
                            (["--by", "", path], "--by is"), (["--top", "-1", path], "--top is"), (["--top", "1.5", path], "--top is"),
                            (["--json", "--svg", "-", path], "standard output")):
            with self.subTest(words=words):
                self.assertEqual(self.run_it(*words, status=2, stdin=subprocess.DEVNULL), "")
                self.assertIn(says, self.said)

    def test_an_empty_file_has_nothing_to_tell(self):
        self.assertEqual(self.told(self.file("a"))["rows"], [])
        self.assertIn("0 events", self.run_it(self.file("a")))

    @unittest.skipIf(SANITIZED, "a sanitizer reserves more")
    def test_memory_is_bounded_whatever_the_lines_hold(self):
        chance = random.Random(2)
        lines = (line(f"c{chance.randrange(100)}", op=f"op {n}", origin=f"{n:016x}", publisher=n, in_step=n, op_id=n,
                      took_ns=chance.randrange(1, 1 << 62), bytes=chance.randrange(1, 1 << 62)) for n in range(60_000))
        path = self.file("a", *lines)
        limit = (400 << 20, 400 << 20)
        told = self.told("--by", "rank,step", path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
        self.assertEqual(told["events"], 60_000)
        self.assertEqual(sum(row["events"] for row in told["rows"]), 60_000)
        self.assertGreater(told["beyond"]["operations"], 0)
        self.assertIn("beyond the limit", self.run_it(path))

    def test_hostile_bytes_never_end_it_otherwise(self):
        chance, whole = random.Random(9), line("collective.completed", op="a", duration_ns=5, op_id=3, rank=1, in_step=2)
        lines = []
        for _ in range(200 if SANITIZED else 3000):
            torn = bytearray(whole[:-1])
            for _ in range(chance.randrange(1, 4)):
                torn[chance.randrange(len(torn))] = chance.randrange(256)
            lines.append(bytes(torn).replace(b"\n", b" ") + b"\n")
        path = self.file("a", *lines)
        told = self.told("--by", "rank,step", path, status=1)
        self.assertEqual(told["events"] + told["left_out"], sum(1 for text in lines if text.strip()))
        self.assertNotRegex(self.run_it(path, status=1), "[\x00-\x09\x0b-\x1f\x7f\x80-\x9f]")


class SummaryPageTest(SummaryTest):
    """docs/summary.md shows what the program does."""

    def test_the_example_of_the_page_is_what_comes_out(self):
        page = (ROOT / "docs/summary.md").read_text()
        lines = re.search(r"```json\n(.*?)```", page, re.S)[1]
        said = re.search(r"\$ ringmain summary 0.jsonl\n(.*?)```", page, re.S)[1]
        (self.folder / "0.jsonl").write_text(lines)
        self.assertEqual(self.run_it("0.jsonl", cwd=self.folder), said)

    def test_the_keys_of_the_page_are_those_of_the_program(self):
        page = (ROOT / "docs/summary.md").read_text()
        shape = re.search(r"```\n(\{\"files\".*?)```", page, re.S)[1]
        documented = set(re.findall(r'"(\w+)"', shape))
        lines = [line("x", origin=f"{rank:016x}", rank=rank, took_ns=5, in_step=1) for rank in (0, 1)]
        lines += [line("x", sequence=3, origin="0" * 16), b"{}\n", line("bus.loss", event_channel="x", full=1, publisher=9),
                  line("collective.issued", op_id=1, publisher=5, origin="0" * 16),
                  line("collective.completed", op_id=2, publisher=6, origin="0" * 16)]
        path = self.file("a", *lines)
        keys = set()

        def gather(value):
            if isinstance(value, dict):
                for key, one in value.items():
                    keys.add(key)
                    gather(one)
            elif isinstance(value, list):
                for one in value:
                    gather(one)
        gather(self.told(path, status=1))
        gather(self.told("--by", "rank,step", path, status=1))
        self.assertEqual(documented, keys - {"took_ns"})


if __name__ == "__main__":
    sys.exit(main())
