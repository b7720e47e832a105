#!/usr/bin/env python3
"""Does `ringmain` do what it says, on real traces and on files that are none?

usage: cli_test.py TESTCASE, with the program in $RINGMAIN_BINARY
"""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from cases import main

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("RINGMAIN_BINARY", str(ROOT / "build/release/bin/ringmain"))
TRACES = ROOT / "examples/traces"
TRACE = TRACES / "ddp_gloo_rank0.json.gz"
SHARED = Path(os.environ.get("RINGMAIN_SHARED_DATA", ROOT / "../shared/data")) / "kineto"
SANITIZED = bool(os.environ.get("RINGMAIN_SANITIZED"))
CUDA_KINDS = {  # columns of the shared table
    "record": "event_record", "wait": "event_wait", "alloc": "memory_allocation", "free": "memory_deallocation",
    "stream create": "stream_creation", "device sync": "device_synchronization",
    "stream sync": "stream_synchronization", "event sync": "event_synchronization"}


def ringmain(*arguments, **options):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=150, check=False,
                          **options)


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def replay(self, *arguments, status=0, **options):
        """The JSON summary of a replay, whose books must balance."""
        run = ringmain("replay", "--json", "--speed", "max", *arguments, **options)
        self.assertEqual(run.returncode, status, run.stderr + run.stdout)
        summary = json.loads(run.stdout)
        self.assertEqual(summary["events"]["lost"], 0)
        self.assertEqual(summary["subscribers"]["called_late"], 0)
        self.assertEqual(summary["subscribers"]["captures_kept"], 0)
        self.assertEqual(summary["subscribers"]["came"], summary["subscribers"]["went"])
        for name, channel in summary["channels"].items():
            self.assertEqual(channel["offered"], channel["delivered"], name)
            self.assertEqual(channel["dropped"], {}, name)
        records = summary["records"]
        self.assertEqual(records["read"], records["mapped"] + sum(records["skipped"].values()))
        self.sentences = run.stderr.splitlines()
        return summary

    def refused(self, *arguments, status, says, **options):
        """The call fails with one sentence, which says so."""
        run = ringmain(*arguments, **options)
        self.assertEqual(run.returncode, status, run.stderr + run.stdout)
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        self.assertTrue(run.stderr.startswith("ringmain: "), run.stderr)
        self.assertIn(says, run.stderr)
        return run


def offered(summary):
    return {name: channel["offered"] for name, channel in summary["channels"].items()}


class RecordingsTest(CliTest):
    def expected(self, trace):
        counts = json.loads((TRACES / "counts.json").read_text())[trace.name]
        phases, collectives = counts["by_phase"], sum(counts["collectives"].values())
        return counts["records"], {
            "replay.metadata": phases["M"], "replay.flow": phases["s"] + phases["f"], "replay.instant": phases["i"],
            "collective.issued": collectives, "collective.completed": collectives, "collective.started": 0,
            "replay.slice": phases["X"] - collectives, "replay.counter": 0,
            **{f"cuda.{kind}": n for kind, n in counts["cuda_kinds"].items()}}

    def test_the_shipped_recordings_give_the_counts_that_were_counted_without_ringmain(self):
        for trace in sorted(TRACES.glob("*.json.gz")):
            records, channels = self.expected(trace)
            summary = self.replay(trace)
            self.assertEqual(summary["records"], {"read": records, "mapped": records, "skipped": {}})
            self.assertEqual(offered(summary), channels)

    def test_latencies_are_measured_and_in_order(self):
        for name, channel in self.replay(TRACE)["channels"].items():
            latency = channel["latency_ns"]
            if channel["offered"] == 0:
                self.assertEqual(set(latency.values()), {None}, name)
                continue
            values = [latency[quantile] for quantile in ("p50", "p90", "p99", "max")]
            self.assertEqual(values, sorted(values), name)
            self.assertGreater(values[0], 0, name)

    def test_two_ranks_are_played_together(self):
        both = self.replay(*sorted(TRACES.glob("*rank[01].json.gz")))
        self.assertEqual(both["records"]["read"], sum(self.expected(t)[0] for t in TRACES.glob("*.json.gz")))
        self.assertGreater(both["threads"], self.replay(TRACE)["threads"])

    def test_the_text_says_that_nothing_was_lost_and_nobody_called_late(self):
        run = ringmain("replay", TRACE, "--speed", "max")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stderr, "")
        self.assertRegex(run.stdout, r"came and went meanwhile and heard [\d,]+ events?: none was called after")
        self.assertIn("zero loss", run.stdout)
        self.assertRegex(run.stdout, r"replay\.slice +13,591 +13,591 +0 ")


class SharedTest(CliTest):
    def table(self):
        """Expected counts by file, from the table beside the recordings."""
        files = {}
        text = (SHARED / "README.md").read_text()
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
                if line.startswith("|")]
        for row in rows:
            if len(row) == 4 and re.match(r"[\d,\s]+$", row[2]):
                counts = re.findall(r"\d[\d,]*\d|\d", row[2])
                for name, count in zip(row[0].split(", "), counts):
                    files[name] = {"records": int(count.replace(",", ""))}
        header = next(row for row in rows if "cuda_runtime" in row)
        for row in rows:
            if len(row) == len(header) and row[0] in files:
                files[row[0]].update({column: cell for column, cell in zip(header[1:], row[1:])})
        return files

    def test_every_recording_gives_the_counts_of_its_table(self):
        if not SHARED.is_dir():
            self.skipTest(f"there is no {SHARED.name} data; set RINGMAIN_SHARED_DATA")
        table = self.table()
        self.assertEqual({path.name.removesuffix(".json.gz") for path in SHARED.glob("*.json.gz")}, set(table))
        for name, row in table.items():
            summary = self.replay(SHARED / f"{name}.json.gz")
            self.assertEqual(summary["records"]["read"], row["records"], name)
            self.assertEqual(summary["records"]["skipped"], {}, name)
            channels = offered(summary)
            for column, kind in CUDA_KINDS.items():
                self.assertEqual(channels[f"cuda.{kind}"], int(row[column].replace(",", "")), f"{name} {kind}")
            annotations = int(row["nccl: annotations"].replace(",", ""))
            kernels, matched = re.match(r"([\d,]+) *(?:\(([\d,]+)\))?", row["nccl kernels (matched by correlation)"]).groups()
            self.assertEqual(channels["collective.issued"], annotations, name)
            self.assertEqual(channels["collective.started"], int((matched or kernels).replace(",", "")), name)
            self.assertEqual(channels["collective.completed"], channels["collective.started"], name)


class OptionsTest(CliTest):
    def test_select_leaves_the_other_channels_out(self):
        summary = self.replay(TRACE, "--select", "collective.*")
        self.assertEqual(set(summary["channels"]), {"collective.issued", "collective.started", "collective.completed"})
        self.assertEqual(sum(offered(summary).values()), 132)
        self.assertEqual(summary["events"]["left_out"], 14493)

    def test_loop_plays_everything_again(self):
        once, thrice = offered(self.replay(TRACE)), offered(self.replay(TRACE, "--loop", 3))
        self.assertEqual(thrice, {name: 3 * n for name, n in once.items()})

    def test_each_publisher_is_heard_in_recorded_order_whatever_the_order_of_publishing(self):
        for order in ("thread", "recorded"):
            lines = self.folder / order
            self.replay(TRACE, "--sink", f"json_lines:{lines}", "--select", "replay.slice", "--order", order)
            events = [json.loads(line) for line in lines.read_text().splitlines()]
            publishers = {event["publisher"] for event in events}
            self.assertGreater(len(publishers), 1)
            for publisher in publishers:
                own = [event for event in events if event["publisher"] == publisher]
                self.assertEqual([event["sequence"] for event in own], list(range(1, len(own) + 1)))
                times = [event["time_ns"] for event in own]
                self.assertEqual(times, sorted(times))
        self.assertEqual(self.replay(TRACE, "--order", "recorded")["threads"], 1)
        self.assertGreater(self.replay(TRACE, "--order", "thread")["threads"], 1)

    def test_recorded_speed_takes_as_long_as_the_recording(self):
        summary = json.loads(ringmain("replay", TRACE, "--json").stdout)
        self.assertGreaterEqual(summary["seconds"], 0.95 * summary["recorded_seconds"])
        self.assertEqual(summary["speed"], 1)

    def test_quiet_says_nothing(self):
        run = ringmain("replay", TRACE, "--quiet", "--speed", "max")
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))

    def test_workers_are_as_many_as_asked_for(self):
        self.assertEqual(self.replay(TRACE, "--workers", 3)["workers"]["count"], 3)

    def test_what_does_not_fit_into_memory_is_sorted_on_disk(self):
        if SANITIZED:
            self.skipTest("a sanitizer's own memory counts too")
        record = '{{"ph":"X","name":"aten::add","cat":"cpu_op","pid":1,"tid":{},"ts":{},"dur":1}}'
        text = ",".join(record.format(i % 5, (7919 * i) % 150_011) for i in range(150_011))
        trace, lines = self.file("large.json", '{"traceEvents":[' + text + "]}"), self.folder / "lines"
        with subprocess.Popen([BINARY, "replay", str(trace), "--json", "--speed", "max", "--memory-max", "32M",
                               "--sink", f"json_lines:{lines}"], stdout=subprocess.PIPE, text=True) as run:
            peak = 0  # the system's own record of it, looked at for as long as there is one
            while run.poll() is None:
                found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{run.pid}/status").read_text())
                peak = max(peak, int(found[1]) if found else 0)
                time.sleep(0.005)
            summary = json.loads(run.stdout.read())
        self.assertEqual(offered(summary)["replay.slice"], 150_011)
        self.assertGreater(summary["spilled_bytes"], 1 << 20)
        self.assertTrue(8 << 10 < peak < 48 << 10, f"{peak} KiB; 32 MiB and the program itself")
        last = {}
        for line in lines.read_text().splitlines():
            publisher, at = (int(re.search(rf'"{key}":(\d+)', line)[1]) for key in ("publisher", "time_ns"))
            self.assertLess(last.get(publisher, -1), at)
            last[publisher] = at

    def test_standard_input_is_read_plain_or_zipped_from_a_file_or_a_pipe(self):
        expected = offered(self.replay(TRACE))
        with TRACE.open("rb") as stored:
            self.assertEqual(offered(self.replay("-", stdin=stored)), expected)
        plain = self.file("plain.json", gzip.decompress(TRACE.read_bytes()))
        for path in (plain, TRACE):
            with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as pipe:
                self.assertEqual(offered(self.replay("-", stdin=pipe.stdout)), expected)

    def test_help_and_version_answer(self):
        self.assertRegex(ringmain("--version").stdout, r"^ringmain \d+\.\d+\.\d+\n$")
        self.assertIn("replay", ringmain("--help").stdout)
        usage = ringmain("help", "replay").stdout
        self.assertEqual(usage, ringmain("replay", "--help").stdout)
        for option in ("--speed", "--order", "--loop", "--select", "--sink", "--memory-max", "--json"):
            self.assertIn(option, usage)


class SinksTest(CliTest):
    def test_every_delivered_event_becomes_a_line_of_json(self):
        path = self.folder / "rank%r.jsonl"
        summary = self.replay(TRACE, "--sink", f"json_lines:{path}", env={**os.environ, "RINGMAIN_RANK": "5"})
        lines = (self.folder / "rank5.jsonl").read_text().splitlines()
        self.assertEqual(len(lines), sum(offered(summary).values()))
        by_channel = {}
        for line in lines:
            event = json.loads(line)
            by_channel[event["channel"]] = by_channel.get(event["channel"], 0) + 1
        self.assertEqual(by_channel, {name: n for name, n in offered(summary).items() if n})

    def test_lines_on_standard_output_are_not_mixed_with_the_summary(self):
        run = ringmain("replay", TRACE, "--speed", "max", "--select", "collective.issued", "--sink", "json_lines:-")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual({json.loads(line)["channel"] for line in run.stdout.splitlines()}, {"collective.issued"})
        self.assertIn("zero loss", run.stderr)

    def test_the_live_summary_counts_every_event(self):
        run = ringmain("replay", TRACE, "--speed", "max", "--quiet", "--sink", "summary")
        self.assertRegex(run.stderr.splitlines()[-1], r"^summary: 14625 events, \d+/s: replay\.slice 13591, ")

    def test_a_full_disk_is_one_sentence_and_a_failure(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        run = self.refused("replay", TRACE, "--speed", "max", "--sink", "json_lines:/dev/full", status=1,
                           says="14625 lines were not written")
        self.assertIn("14,625", run.stdout)  # the others heard everything
        with open("/dev/full", "w") as full:
            run = subprocess.run([BINARY, "replay", str(TRACE), "--speed", "max"], stdout=full, stderr=subprocess.PIPE,
                                 text=True, check=False)
        self.assertEqual((run.returncode, "standard output" in run.stderr), (1, True), run.stderr)

    def with_a_closed_pipe(self, *words):
        reading, writing = os.pipe()
        os.close(reading)
        run = subprocess.run([BINARY, *words], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
        os.close(writing)
        return run

    def test_a_closed_pipe_is_one_sentence_and_a_failure(self):
        run = self.with_a_closed_pipe("replay", str(TRACE), "--speed", "max", "--quiet", "--sink", "json_lines:-")
        self.assertEqual((run.returncode, "Broken pipe" in run.stderr), (1, True), run.stderr)

    def test_a_reader_that_has_seen_enough_gets_no_complaint(self):
        for words in (("--help",), ("providers",), ("man", "sort"), ("completion", "bash")):
            run = self.with_a_closed_pipe(*words)
            self.assertEqual((run.returncode, run.stderr), (-signal.SIGPIPE, ""), words)


class ErrorsTest(CliTest):
    def test_what_is_no_trace_is_refused_with_one_sentence(self):
        self.refused("replay", self.folder / "absent", status=1, says="absent")
        self.refused("replay", self.folder, status=1, says="folder")
        self.refused("replay", self.file("empty", ""), status=1, says="empty")
        self.refused("replay", self.file("a.png", b"\x89PNG\r\n\x1a\n" + bytes(64)), status=1, says="picture")
        self.refused("replay", self.file("a.html", "<!DOCTYPE html><html></html>"), status=1, says="not a")
        self.refused("replay", self.file("noise", bytes(range(255, 0, -1))), status=1, says="noise")
        self.refused("replay", "-", status=1, says="empty", stdin=subprocess.DEVNULL)

    def test_a_trace_cut_short_is_played_as_far_as_it_goes(self):
        stored = TRACE.read_bytes()
        for name, content in (("cut.json", gzip.decompress(stored)[:300_000]), ("cut.json.gz", stored[:100_000])):
            summary = self.replay(self.file(name, content), status=1)
            self.assertGreater(sum(offered(summary).values()), 1000)
            self.assertEqual(len(self.sentences), 1)
            self.assertIn("cut short", self.sentences[0])

    def test_a_bad_file_among_good_ones_does_not_hide_them(self):
        summary = self.replay(self.folder / "absent", TRACE, status=1)
        self.assertEqual(summary["records"]["read"], 14559)
        self.assertEqual(len(summary["faults"]), 1)

    def test_hostile_records_are_counted_and_passed_over(self):
        good = '{"ph":"X","name":"a","cat":"cpu_op","pid":1,"tid":1,"ts":5,"dur":1}'
        bad = ["null", "[]", "{}", '{"ph":7}', good.replace('"dur":1', '"dur":-4'), good.replace(":5", ":1e300"),
               good.replace('"a"', '"\ud800"'.encode("utf-8", "surrogatepass").decode("latin-1")),
               '{"ph":"X","args":' + "[" * 5000 + "]" * 5000 + "}"]
        trace = self.file("hostile.json", '{"traceEvents":[' + ",".join([*bad, good]) + "]}")
        summary = self.replay(trace)
        self.assertEqual(summary["records"]["read"], len(bad) + 1)
        self.assertGreaterEqual(sum(summary["records"]["skipped"].values()), len(bad) - 1)
        self.assertGreaterEqual(offered(summary)["replay.slice"], 1)

    def test_a_wrong_word_gets_the_nearest_right_one(self):
        for arguments, says in ((["replya"], "'replay'"), (["replay", "--sped", "1", "x"], "'--speed'"),
                                (["replay", "x", "--order", "recoded"], "'recorded'"), (["--versoin"], "'--version'"),
                                (["replay", "x", "--sink", "json_line:y"], "'json_lines'"), (["replay", "x", "--select", "cuda"], "'cuda.>'"),
                                (["replay", "x", "--select=cuda.event_recor"], "'cuda.event_record'"), (["replay", "x", "--select=colective.*"], "'collective.*'")):
            self.refused(*arguments, status=2, says=f"did you mean {says}")

    def test_wrong_values_are_refused(self):
        for option, value in (("--speed", "0"), ("--speed", "-1"), ("--speed", "nan"), ("--loop", "0"), ("--loop", "1.5"),
                              ("--workers", "0"), ("--workers", "99"), ("--memory-max", "1M"), ("--memory-max", "many"),
                              ("--sink", "json_lines"), ("--order", ""), ("--select", "")):
            self.refused("replay", "x", f"{option}={value}", status=2, says="--help")
        self.refused("replay", status=2, says="wants a trace")
        self.refused("replay", "x", "--json=1", status=2, says="no value")
        self.refused("replay", "x", "--speed", status=2, says="wants a value")
        self.assertEqual(ringmain().returncode, 2)


class InterruptTest(CliTest):
    def interrupted(self, *arguments, after, **options):
        with subprocess.Popen([BINARY, "replay", "--json", *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, **options) as run:
            deadline = time.monotonic() + 60
            while not after(run) and time.monotonic() < deadline:
                time.sleep(0.01)
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 130, err)
        self.assertIn("interrupted", err)
        return out

    def test_ctrl_c_stops_publishing_and_sums_up_what_was_published(self):
        lines = self.folder / "lines"

        out = self.interrupted(TRACE, "--speed", "0.001", "--sink", f"json_lines:{lines}",
                               after=lambda _: lines.exists() and lines.stat().st_size > 0)
        summary = json.loads(out)
        self.assertTrue(summary["interrupted"])
        self.assertEqual(summary["events"]["lost"], 0)
        delivered = sum(channel["delivered"] for channel in summary["channels"].values())
        self.assertTrue(0 < delivered < 14625)
        self.assertEqual(len(lines.read_text().splitlines()), delivered)
        self.assertEqual(summary["subscribers"]["called_late"], 0)

    def test_ctrl_c_ends_the_wait_for_standard_input(self):
        def blocks_the_signal(run):  # from then on it is heard in another way
            blocked = re.search(r"SigBlk:\s*(\w+)", Path(f"/proc/{run.pid}/status").read_text())[1]
            return int(blocked, 16) & (1 << (signal.SIGINT - 1))

        reading, writing = os.pipe()
        try:
            os.write(writing, b'{"traceEvents":[')
            self.interrupted("-", after=blocks_the_signal, stdin=reading)
        finally:
            os.close(reading)
            os.close(writing)


class DoctorTest(CliTest):
    def test_the_doctor_finds_this_machine_fit_and_says_so_in_both_forms(self):
        said = json.loads(ringmain("doctor", "--json").stdout)
        self.assertTrue(said["ok"], said)
        names = [finding["name"] for finding in said["findings"]]
        for name in ("library", "workers", "barrier", "waking", "cores", "clock", "memory", "libraries", "rank",
                     "flight recorder", "door"):
            self.assertIn(name, names)
        run = ringmain("doctor")
        self.assertEqual(run.returncode, 0)
        self.assertIn("ringmain works here", run.stdout)

    def test_the_fence_form_is_noticed_and_mended(self):
        said = json.loads(ringmain("doctor", "--json", env={**os.environ, "RINGMAIN_BARRIER": "fence"}).stdout)
        barrier = next(finding for finding in said["findings"] if finding["name"] == "barrier")
        self.assertEqual(barrier["state"], "note")
        self.assertIn("unset RINGMAIN_BARRIER", barrier["mend"])


if __name__ == "__main__":
    sys.exit(main())
