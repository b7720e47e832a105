#!/usr/bin/env python3
"""Does `ringmain replay --format torch_trace` say what is in a log, as an independent count has it?

usage: trace_log_test.py TESTCASE, with the program in $RINGMAIN_BINARY
"""

import collections
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from cases import main

ROOT = Path(__file__).resolve().parents[3]
BINARY = os.environ.get("RINGMAIN_BINARY", str(ROOT / "build/release/bin/ringmain"))
SHARED = Path(os.environ.get("RINGMAIN_SHARED_DATA", ROOT / "../shared/data")) / "torch_trace"
LOG = SHARED / "dedicated_log_torch_trace_small.log.gz"


def records_of(text):
    """(kind, its fields, all metadata, payload) of each record."""
    records = []
    for line in text.split("\n"):
        if line.startswith("\t"):
            records[-1][3].append(line[1:])
        elif line:
            metadata = json.loads(line.split("] ", 1)[1])
            kind = next(iter(metadata))
            records.append((kind, metadata[kind], metadata, []))
    return [(kind, fields, metadata, "\n".join(payload)) for kind, fields, metadata, payload in records]


def id_of(record):
    return record["frame_id"], record["frame_compile_id"]


class TraceLogTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def replay(self, *arguments, status=0, **options):
        """The JSON summary, and the events by channel."""
        lines = self.folder / "events.jsonl"
        run = subprocess.run(
            [BINARY, "replay", "--format", "torch_trace", "--speed", "max", "--json", "--sink",
             f"json_lines:{lines}", *map(str, arguments)], capture_output=True, timeout=150, check=False, **options)
        self.assertEqual(run.returncode, status, run.stderr.decode() + run.stdout.decode())
        summary = json.loads(run.stdout)
        self.sentences = run.stderr.decode().splitlines()
        events = collections.defaultdict(list)
        for line in lines.read_text().splitlines():
            event = json.loads(line)
            events[event["channel"].removeprefix("compile.")].append(event)
        self.assertEqual(summary["events"]["lost"], 0)
        for name, channel in summary["channels"].items():
            self.assertEqual(channel["offered"], channel["delivered"], name)
            self.assertEqual(channel["offered"], len(events[name.removeprefix("compile.")]), name)
        return summary, events

    def ids(self, events, **equal):
        return [(e["frame"], e["recompile"]) for e in events
                if all(e[key] == value for key, value in equal.items())]

    def compare(self, records, summary, events):
        """Each event against the records, counted here in another way."""
        of = collections.defaultdict(list)
        artifacts = collections.defaultdict(list)
        for kind, fields, metadata, payload in records:
            of[kind].append((fields, metadata, payload))
            if kind == "artifact":
                artifacts[fields["name"]].append((fields, metadata, payload))
        counts = summary["records"]
        self.assertEqual(counts["read"], len(records))
        self.assertEqual(counts["kinds"], {kind: len(all_) for kind, all_ in of.items()})
        self.assertEqual(counts["artifacts"], {name: len(all_) for name, all_ in artifacts.items()})

        self.assertEqual(self.ids(events["start"], trigger="dynamo"), [id_of(m) for _, m, _ in of["dynamo_start"]])
        started = collections.Counter(self.ids(events["start"], trigger="dynamo"))
        ended = [(id_of(m), f["fail_type"] or "", f["fail_reason"] or "") for f, m, _ in of["compilation_metrics"]
                 if started[id_of(m)]]
        self.assertEqual([((e["frame"], e["recompile"]), e["exception"], e["reason"])
                          for e in events["end"] if e["trigger"] == "dynamo"], ended)
        backward = [id_of(m) for _, m, _ in of["bwd_compilation_metrics"]]
        self.assertEqual(self.ids(events["end"], trigger="lazy_backward"), backward)
        self.assertEqual({e["span"] for e in events["start"]}, {e["span"] for e in events["end"]})
        limits = [id_of(m) for f, m, _ in of["compilation_metrics"]
                  if "recompile limit exceeded" in (f["fail_reason"] or "")]
        self.assertEqual(self.ids(events["limit"]), limits)

        self.compare_graphs(of, events)
        self.compare_breaks(artifacts, of, events)
        reasons = [(id_of(m), p.rstrip("\n")) for _, m, p in artifacts["recompile_reasons"]]
        for event, (id_, text) in zip(events["recompile"], reasons, strict=True):
            all_ = json.loads(text) if text.startswith("[") else [text]
            self.assertEqual((event["frame"], event["recompile"]), id_)
            self.assertEqual((event["reason"], event["reasons"]), (all_[0], len(all_)))
        failed = [e for e in events["guard"] if e["what"] == "failed"]
        self.assertEqual(len(failed), sum(e["reasons"] for e in events["recompile"]))
        caches = [(name, *id_of(m)) for kind, f, m, _ in records if kind == "artifact"
                  for name in [f["name"]] if re.search("cache_(hit|miss|bypass)$", name)]
        layers = {"fx_graph": "fx_graph", "aot_autograd": "aotautograd"}
        self.assertEqual([(f"{layers[e['layer']]}_cache_{e['what']}", e["frame"], e["recompile"])
                          for e in events["cache"]], caches)
        letters = {"B": "begin", "E": "end", "i": "instant"}
        phases = [json.loads(p) for _, _, p in of["chromium_event"]]
        self.assertEqual([(e["name"], e["edge"]) for e in events["phase"]],
                         [(p["name"], letters[p["ph"]]) for p in phases])
        self.assertEqual(len(events["backend"]), sum(p["name"] == "backend_compile" for p in phases))
        created = [(f["symbol"], f["val"], f["source"]) for f, _, _ in of["create_symbol"]]
        self.assertEqual([(e["symbol"], e["value"], e["source"]) for e in events["dynamic_shape"]
                          if e["what"] == "created"], created)

    def compare_graphs(self, of, events):
        """What was read out of a graph's text is what PyTorch counted itself."""
        self.assertEqual(self.ids(events["graph"]), [id_of(m) for _, m, _ in of["dynamo_output_graph"]])
        counted = {(e["frame"], e["recompile"], e["reset"]): e for e in events["metrics"] if not e["backward"]}
        for graph in events["graph"]:
            metrics = counted[graph["frame"], graph["recompile"], graph["reset"]]
            if metrics["graph_ops"] >= 0:  # not of a compile that failed
                self.assertEqual((graph["ops"], graph["inputs"]), (metrics["graph_ops"], metrics["graph_inputs"]))
        for event, (_, metadata, payload) in zip(
                [e for e in events["guard"] if e["what"] == "installed"], of["dynamo_cpp_guards_str"], strict=True):
            self.assertEqual((event["frame"], event["recompile"]), id_of(metadata))
            self.assertEqual(event["count"], len(re.findall(r"^[| ]*\+- [A-Z0-9_]+:", payload, re.MULTILINE)))
            latency = re.search(r"Guard latency = ([\d.]+) us", payload)
            self.assertEqual(event["check_ns"], round(float(latency[1]) * 1000) if latency else 0)

    def compare_breaks(self, artifacts, of, events):
        broke = [e for e in events["graph_break"] if e["what"] == "broke"]
        for event, (_, metadata, payload) in zip(broke, artifacts["dynamo_graph_break_reason"], strict=True):
            place = re.match(r"Graph break in user code at (.*):(\d+)\n", payload)
            self.assertEqual((event["file"], event["line"]), (place[1], int(place[2])))
            self.assertEqual((event["frame"], event["recompile"]), id_of(metadata))
            restarts = [r for f, m, _ in of["compilation_metrics"] if id_of(m) == id_of(metadata)
                        for r in f["restart_reasons"] or []]
            if restarts:  # a branch breaks without
                self.assertIn(event["explained"], restarts)
            self.assertEqual(event["reason"], event["explained"].split("\n")[0])
        resumes = [m for f, m, _ in of["dynamo_start"]
                   if (f.get("stack") or [{}])[-1].get("name", "").startswith("torch_dynamo_resume_in_")]
        resumed = [e for e in events["graph_break"] if e["what"] == "resumed"]
        self.assertEqual([(e["resume_frame"], e["resume_recompile"]) for e in resumed], [id_of(m) for m in resumes])
        self.assertEqual([e["number"] for e in resumed],
                         [e["resumes_break"] for e in events["start"] if e["resumes_break"]])


class RecordedTest(TraceLogTest):
    """A log of a real program."""

    def setUp(self):
        super().setUp()
        if not LOG.exists():
            self.skipTest(f"{LOG.name} is not there; name the folder with the recordings by RINGMAIN_SHARED_DATA")
        self.text = gzip.decompress(LOG.read_bytes()).decode()

    def test_every_event_is_what_the_log_says(self):
        summary, events = self.replay(LOG)
        self.compare(records_of(self.text), summary, events)
        self.assertEqual(summary["records"]["skipped"], {})
        oracle = json.loads((SHARED / "oracle.json").read_text())
        for ours, theirs in (("read", "records"), ("with_payload", "with_payload"), ("kinds", "kinds"),
                             ("artifacts", "artifacts")):
            self.assertEqual(summary["records"][ours], oracle[theirs])
        phases = collections.Counter(e["edge"] for e in events["phase"])
        self.assertEqual(phases, {"begin": oracle["chromium_ph"]["B"], "end": oracle["chromium_ph"]["E"],
                                  "instant": oracle["chromium_ph"]["i"]})

    def test_the_traps_of_the_log_are_not_walked_into(self):
        _, events = self.replay(LOG)
        self.assertEqual([e["inferred"] for e in events["reset"]], [True])
        starts = [(e["frame"], e["recompile"], e["reset"], e["trigger"]) for e in events["start"]]
        self.assertEqual(len(set(starts)), len(starts))  # 0/0 and 1/0 are there twice, in two epochs
        self.assertNotIn((6, 3), self.ids(events["start"]))
        self.assertEqual(self.ids(events["limit"]), [(6, 3)])
        self.assertEqual(events["limit"][0]["limit"], 3)
        self.assertNotIn((4, 1), self.ids(events["recompile"]))
        self.assertEqual([e["outcome"] for e in events["end"] if e["frame"] == 4], ["failed", "failed"])
        self.assertEqual([e["attempt"] for e in events["end"] if e["frame"] == 0 and e["trigger"] == "dynamo"], [1, 1])
        times = [e["time_ns"] for e in events["start"]]
        self.assertEqual(times, sorted(times))
        self.assertEqual(times[0] // 10**9, 1795289616)

    def test_standard_input_and_plain_text_are_the_same(self):
        expected, _ = self.replay(LOG)
        plain = self.folder / "plain.log"
        plain.write_text(self.text)
        self.assertEqual(self.replay(plain)[0]["records"], expected["records"])
        with LOG.open("rb") as log:
            self.assertEqual(self.replay("-", stdin=log)[0]["records"], expected["records"])

    def test_a_log_that_was_cut_gives_what_is_whole(self):
        cut = self.folder / "cut.log.gz"
        cut.write_bytes(LOG.read_bytes()[:20000])
        summary, _ = self.replay(cut, status=1)
        self.assertGreater(summary["records"]["read"], 10)
        self.assertEqual(len(self.sentences), 1)
        self.assertIn("cut short", self.sentences[0])


def line(json_text, payload=None):
    text = f"V0401 12:00:00.000000 77 torch/_dynamo/x.py:1] {json_text}\n"
    return text + ("" if payload is None else "".join(f"\t{part}\n" for part in payload.split("\n")))


def record(kind, fields, frame=None, payload=None):
    metadata = {kind: fields}
    if frame is not None:
        metadata |= {"frame_id": frame[0], "frame_compile_id": frame[1], "attempt": 0}
    if payload is not None:
        metadata["has_payload"] = hashlib.md5(payload.encode()).hexdigest()
    return line(json.dumps(metadata), payload)


METRICS = {"fail_type": None, "fail_reason": None, "restart_reasons": [], "duration_us": 7}


def made_log():
    """A small log, as PyTorch would write it."""
    stack = [{"line": 3, "name": "step", "filename": 0}]
    graph = 'class GraphModule(torch.nn.Module):\n    def forward(self, L_x_: "f32[3]"):\n        l_x_ = L_x_\n' \
            '        add = l_x_ + 1;  l_x_ = None\n        return (add,)\n'
    event = {"name": "dynamo", "ts": 1711972800000000.0, "ph": "B", "args": {}}
    return "".join([
        record("str", ["/src/step.py", 0]),
        record("chromium_event", {}, (0, 0), json.dumps(event)),
        record("dynamo_start", {"stack": stack}, (0, 0)),
        record("dynamo_output_graph", {}, (0, 0), graph),
        record("dynamo_cpp_guards_str", {}, (0, 0), "+- TENSOR_MATCH: x\n\nGuard latency = 1.50 us"),
        record("compilation_metrics", METRICS | {"graph_op_count": 1, "graph_input_count": 1}, (0, 0)),
        record("chromium_event", {}, (0, 0), json.dumps(event | {"ph": "E", "ts": 1711972800000900.0})),
        record("artifact", {"name": "recompile_reasons", "encoding": "json"}, (0, 1), "0/0: x.size()[0] == 3"),
        record("dynamo_start", {"stack": stack}, (0, 1)),
        record("create_symbol", {"symbol": "s0", "val": "5", "source": "L['x'].size()[0]"}, (0, 1)),
        record("compilation_metrics", METRICS | {"fail_type": "Unsupported", "fail_reason": "no"}, (0, 1)),
        record("a_kind_of_tomorrow", {"x": 1}, (0, 1)),
    ])


class MadeTest(TraceLogTest):
    def file(self, content, name="made.log"):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def test_every_event_is_what_the_log_says(self):
        log = made_log()
        summary, events = self.replay(self.file(log))
        self.compare(records_of(log), summary, events)
        self.assertEqual(summary["records"]["skipped"], {})

    def test_what_is_damaged_is_counted_and_the_rest_is_played(self):
        log = made_log().replace("+- TENSOR_MATCH", "+- TENSOR-MATCH").replace('"symbol"', '"symbol')
        log = "\torphan\nwarning: nothing\n" + log + "V0401 12:00:00.000000 77 x.py:1] {\"dynamo_st"
        summary, events = self.replay(self.file(log))
        self.assertEqual(summary["records"]["skipped"], {"not_a_record": 1, "orphan_payload": 1, "damaged_payload": 1,
                                                         "bad_json": 2})
        self.assertEqual(len(events["start"]), 2)

    def test_gzip_and_several_files_are_played(self):
        log = self.file(gzip.compress(made_log().encode()), "made.log.gz")
        summary, events = self.replay(log, log)
        self.assertEqual(summary["records"]["read"], 24)
        self.assertEqual(len(events["start"]), 4)
        self.assertEqual(events["reset"], [])  # the ids of two processes are nothing to each other

    def test_select_leaves_the_others_out(self):
        summary, events = self.replay("--select", "compile.end", self.file(made_log()))
        self.assertEqual(set(k for k, v in events.items() if v), {"end"})
        self.assertEqual(summary["channels"]["compile.start"]["offered"], 0)

    def test_what_is_no_log_is_one_sentence(self):
        for content in ("", "hello\n", "{}", b"\xff" * 4096, '{"traceEvents": []}'):
            self.replay(self.file(content), status=1)
            self.assertEqual(len(self.sentences), 1, self.sentences)
            self.assertIn("no record of a structured trace", self.sentences[0])

    def test_wrong_calls_are_one_sentence(self):
        for arguments, says in ((["--format", "torch"], "kineto or torch_trace"),
                                (["--format", "torch_trace", "--loop", "2"], "--loop is for Kineto"),
                                (["--format", "torch_trace", "--select", "cuda.*"], "no channel of a replay")):
            run = subprocess.run([BINARY, "replay", *arguments, "x"], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 2)
            self.assertEqual(len(run.stderr.splitlines()), 2 if "ringmain help" in run.stderr else 1, run.stderr)
            self.assertIn(says, run.stderr)


if __name__ == "__main__":
    sys.exit(main())
