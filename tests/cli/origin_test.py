#!/usr/bin/env python3
"""Does each line say which process it comes from, and is each operation's number unique?

usage: origin_test.py TESTCASE, with the program in $RINGMAIN_BINARY and the test programs in $RINGMAIN_PROGRAMS
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from run_test import BINARY, PUBLISHER, ROOT, RunTest, main

TRACE = ROOT / "examples/traces" / "ddp_gloo_rank0.json.gz"


class OriginsTest(RunTest):
    """However many processes share a name, a rank, a number or a file."""

    def origins(self, path=None):
        """The processes that wrote the file, by origin: what each says of itself in its first line, and its events."""
        said, events = {}, {}
        for line in (path or self.lines).read_text().splitlines():
            event = json.loads(line)
            self.assertEqual("origin_process" in event, event["origin"] not in said, "once, and at first")
            said.setdefault(event["origin"], event.get("origin_process"))
            events.setdefault(event["origin"], []).append(event)
        return said, events

    def test_processes_that_share_a_file_can_be_told_apart(self):
        script = f"{PUBLISHER} returns 50 & {PUBLISHER} returns 70 & {PUBLISHER} returns 90; wait"
        self.run_it("--sink", self.sink, "--", "sh", "-c", script)
        said, events = self.origins()
        self.assertEqual(sorted(map(len, events.values())), [50, 70, 90])
        self.assertEqual(len({process["pid"] for process in said.values()}), 3)
        names = [(origin, event["publisher"], event["sequence"]) for origin, own in events.items() for event in own]
        self.assertEqual(len(set(names)), 210)
        for process in said.values():
            self.assertEqual((process["host"], process["program"]), (socket.gethostname(), "run_publisher"))

    def test_the_two_clocks_of_an_origin_give_the_time_of_day(self):
        before = time.time_ns()
        self.run_it("--sink", self.sink, "--", PUBLISHER, "returns", 5)
        after = time.time_ns()
        said, events = self.origins()
        for origin, process in said.items():
            for event in events[origin]:
                self.assertTrue(before <= event["time_ns"] + process["realtime_ns"] - process["monotonic_ns"] <= after)

    def test_an_agent_without_a_rank_and_rank_0_share_a_file_knowingly(self):
        ranks = "; ".join(f"RANK={r} LOCAL_RANK={r} WORLD_SIZE=2 {PUBLISHER} returns {20 + r}" for r in (0, 1))
        self.run_it("--sink", f"json_lines:{self.folder}/%r.jsonl", "--", "sh", "-c", f"{PUBLISHER} returns 10; {ranks}")
        said, events = self.origins(self.folder / "0.jsonl")
        self.assertEqual({(process["launcher"], process["rank"], process["world_size"], len(events[origin]))
                          for origin, process in said.items()}, {("none", 0, 1, 10), ("torchrun", 0, 2, 20)})
        said, events = self.origins(self.folder / "1.jsonl")
        self.assertEqual([(process["launcher"], process["rank"]) for process in said.values()], [("torchrun", 1)])

    def test_what_a_process_becomes_by_exec_has_another_origin(self):
        self.run_it("--sink", f"json_lines:{self.folder}/%p.jsonl", "--", PUBLISHER, "exec", 100)
        (path,) = self.folder.glob("*.jsonl")
        said, events = self.origins(path)
        self.assertEqual(sorted(map(len, events.values())), [50, 100])
        self.assertEqual({process["pid"] for process in said.values()}, {int(path.stem)})

    def test_no_operation_of_several_traces_or_loops_has_anothers_number(self):
        lines = self.folder / "lines"
        run = subprocess.run([BINARY, "replay", "--speed", "max", "--loop", "2", "--select", "collective.*", "--sink",
                              f"json_lines:{lines}", TRACE, TRACE], capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        events = [json.loads(line) for line in lines.read_text().splitlines()]
        self.assertEqual({event["origin"] for event in events}, {events[0]["origin"]})
        self.assertEqual([i for i, event in enumerate(events) if "origin_process" in event], [0])
        for what in ("issued", "completed"):
            ids = [event["op_id"] for event in events if event["channel"] == f"collective.{what}"]
            self.assertGreater(len(ids), 4)
            self.assertEqual(len(set(ids)), len(ids), what)
        issued, ended = ({event["op_id"] for event in events if event["channel"] == f"collective.{what}"}
                         for what in ("issued", "completed"))
        self.assertEqual(issued, ended)


class OutputsTest(RunTest):
    """A sink harms no file of others, and shares one knowingly."""

    def test_a_link_is_refused_and_what_it_leads_to_untouched(self):
        target = self.folder / "precious"
        target.write_text("precious")
        self.lines.symlink_to(target)
        run = self.run_it("--sink", self.sink, "--", PUBLISHER, "returns", 5)
        self.assertIn(f"cannot open {self.lines} for writing: it is a link", run.stderr)
        self.assertEqual(target.read_text(), "precious")

    def test_a_new_file_is_its_owners_alone_or_as_the_user_says(self):
        for env, mode in ((os.environ, 0o600), ({**os.environ, "RINGMAIN_OUTPUT_MODE": "0644"}, 0o644)):
            self.lines.unlink(missing_ok=True)
            self.run_it("--sink", self.sink, "--", PUBLISHER, "returns", 5, env=env, umask=0o022)
            self.assertEqual(self.lines.stat().st_mode & 0o777, mode)

    def test_a_run_that_begins_while_another_writes_empties_nothing(self):
        # The first has written, and lives, in silence.
        with subprocess.Popen([BINARY, "run", "--source", "heartbeat:1", "--sink", self.sink, "--", "cat"],
                              stdin=subprocess.PIPE) as first:
            self.assertTrue(self.comes(lambda: self.lines.exists() and self.lines.read_text().count("\n") > 3))
            first.send_signal(signal.SIGSTOP)
            self.assertTrue(self.comes(lambda: Path(f"/proc/{first.pid}/stat").read_text().rsplit(")")[1].split()[0] == "T"))
            early = self.lines.read_text().splitlines()[0]
            self.run_it("--sink", self.sink, "--", PUBLISHER, "returns", 5)
            first.send_signal(signal.SIGCONT)
            first.stdin.close()
            self.assertEqual(first.wait(100), 0)
        self.assertEqual(self.lines.read_text().splitlines()[0], early)
        self.assertEqual(len(self.events()), 5)
        self.run_it("--sink", self.sink, "--", PUBLISHER, "returns", 5)
        self.assertEqual(len(self.lines.read_text().splitlines()), 5)

    def comes(self, condition):
        until = time.monotonic() + 60
        while not condition() and time.monotonic() < until:
            time.sleep(0.01)
        return condition()

    def test_what_the_user_names_on_purpose_is_written(self):
        for sink in ("-", "/dev/stdout"):
            run = self.run_it("--sink", f"json_lines:{sink}", "--", PUBLISHER, "returns", 5)
            self.assertEqual(run.stdout.count('"program.said"'), 5)
        run = self.run_it("--sink", "json_lines:/dev/stderr", "--", PUBLISHER, "returns", 5)
        self.assertEqual(run.stderr.count('"program.said"'), 5)
        reading, writing = os.pipe()
        self.run_it("--sink", f"json_lines:/dev/fd/{writing}", "--", PUBLISHER, "returns", 5, pass_fds=[writing])
        os.close(writing)
        with os.fdopen(reading) as lines:
            self.assertEqual(lines.read().count('"program.said"'), 5)


if __name__ == "__main__":
    sys.exit(main())
