#!/usr/bin/env python3
"""Does `ringmain door stalled` name those that the others wait for, and nobody where that is not certain?

usage: door_stalled_test.py TESTCASE, with the program in $RINGMAIN_BINARY. What doors answer is made up here.
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from cases import main
from door_case import DoorCase

SECOND = 1_000_000_000
NOW = 1000 * SECOND


def group(rank, name="dp", communicator=7, ranks=4, waiting=0, unseen=0, last=None, **sequences):
    return {"group": name, "communicator": communicator, "rank": rank, "ranks": ranks, "nodes": 1, "waiting": waiting,
            "unseen": unseen, "last": last, "last_point_to_point": None, "sequences": sequences}


def last(sequence, seconds, func="AllReduce"):
    return {"func": func, "sequence": sequence, "since_ns": int(seconds * SECOND)}


def operation(rank, reading, peer=None, sequence=42, waited=60.0, name="dp", communicator=7, func="AllReduce", **more):
    return {"func": func, "group": name, "rank": rank, "reading": reading, "last": "recv_wait" if peer is not None else None,
            "peer": peer, "nccl_channel": 1, "step": 3, "waited_ns": int(waited * SECOND), "since_ns": int(waited * SECOND),
            "sequence": sequence, "communicator": communicator, "nccl_channels": 2, "begun_channels": 2, "open_proxies": 0,
            "proxies": [], **more}


class StalledTest(DoorCase):
    def setUp(self):
        super().setUp()
        self.doors.mkdir(mode=0o700)
        self.made = 0

    def process(self, groups=(), operations=(), asked=300, now=NOW, **more):
        """A door with that answer; the number of its process, which is this one's."""
        self.made += 1
        source = {"source": "nccl", "asked_for": ["operations", "proxies"], "not_asked_for": ["proxy_steps", "kernel_channels"],
                  "asked_for_ns": asked * SECOND, "masked": False, "no_room": 0, "communicators": list(groups),
                  "operations": list(operations), "left_out": 0, **more}
        answer = {"pid": 4700 + self.made, "program": "python3", "rank": self.made - 1, "world_size": 4, "monotonic_ns": now,
                  "sources": [source]}
        self.listen(self.doors / f"door-{os.getpid()}-1-{self.made}.sock", json.dumps(answer).encode() + b"\n\n")

    def verdict(self):
        run = self.ringmain("door", "stalled", "--all")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        document = json.loads(self.said("stalled", "--all", "--json"))
        told = run.stdout.splitlines()[-1]
        self.assertEqual(told if told.startswith("They wait for ") else None, document["waited_for"])
        return document["waited_for"]

    def test_what_each_waits_for_is_readable(self):
        receives = operation(0, None, open_proxies=9, proxies=[{"nccl_channel": 5, "peer": 6, "send": False},
                                                               {"nccl_channel": 0, "peer": 1, "send": True}])
        self.process([group(0, waiting=2, last=last(42, 60))], [operation(0, "peer_or_network", 2), receives], left_out=4)
        self.assertEqual(self.said("stalled"), """\
Process 4701 (python3), rank 0 of 4
  AllReduce 42 of dp, rank 0: nothing heard for 60.0 s; on NCCL channel 1, step 3, it waits for rank 2, or the network between (recv_wait)
  AllReduce 42 of dp, rank 0: nothing heard for 60.0 s; open on the network: from rank 6 on NCCL channel 5, to rank 1 on NCCL channel 0, 7 more
  4 later operations are left out
  dp, rank 0 of 4: 2 under way; last called AllReduce 42, 60.0 s ago
  NCCL has been asked for operations and proxies for 300.0 s; what began before is not known; it is not asked for proxy steps and kernel channels
""")

    def test_who_has_not_called_is_named(self):
        self.process([group(0, AllReduce=42)], [operation(0, "peer_or_network", 1)])
        self.process([group(1, AllReduce=41, last=last(41, 90))])
        self.assertEqual(self.verdict(), "They wait for rank 1 of dp (process 4702), which has not called AllReduce 42 of dp.")

    def test_the_way_is_followed_to_its_end(self):
        self.process([group(0, AllReduce=42)], [operation(0, "peer_or_network", 1)])
        self.process([group(1, AllReduce=42)], [operation(1, "network", 2)])
        self.process([group(2, AllReduce=42)], [operation(2, "own_gpu_late")])
        self.process([group(3, AllReduce=42)], [operation(3, "peer_has_no_room", 0)])
        self.assertEqual(self.verdict(), "They wait for rank 2 of dp (process 4703), which waits for its own GPU in AllReduce 42 of dp.")

    def test_a_kernel_that_runs_waits_for_those_that_have_not_called_or_begun(self):
        self.process([group(0, AllReduce=42)], [operation(0, "kernel_running")])
        self.process([group(1, AllReduce=42)], [operation(1, "kernel_running")])
        self.process([group(2)])
        self.assertEqual(self.verdict(), "They wait for rank 2 of dp (process 4703), which has not called AllReduce 42 of dp.")

    def test_one_whose_kernel_has_not_begun_is_named_where_it_is_waited_for(self):
        self.process([group(0, AllReduce=42)], [operation(0, "peer_or_network", 1)])
        self.process([group(1, AllReduce=42)], [operation(1, "not_begun")])
        self.assertEqual(self.verdict(), "They wait for rank 1 of dp (process 4702), which has not begun AllReduce 42 of dp.")

    def test_one_that_waits_in_another_communicator_is_explained_by_that(self):
        self.process([group(0, AllReduce=42)], [operation(0, "peer_or_network", 1)])
        self.process([group(1, AllReduce=41), group(0, "tp", 8, AllGather=5)],
                     [operation(0, "peer_or_network", 1, 5, name="tp", communicator=8, func="AllGather")])
        self.process([group(1, "tp", 8)])
        self.assertEqual(self.verdict(), "They wait for rank 1 of tp (process 4703), which has not called AllGather 5 of tp.")

    def test_where_nothing_shows_an_end_who_has_not_called_is_named_all_the_same(self):
        for rank in (0, 1, 3):
            self.process([group(rank, unseen=3, last=last(42, 60), AllReduce=42)])
        self.process([group(2, unseen=2, last=last(41, 90), AllReduce=41)])
        self.assertEqual(self.verdict(), "They wait for rank 2 of dp (process 4704), which has not called AllReduce 42 of dp.")

    def test_a_receive_waits_for_its_peer(self):
        self.process([group(0)], [operation(0, "kernel_running", 3, func="Recv", sequence=0)])
        self.process([group(1)])
        self.assertEqual(self.verdict(), "They wait for rank 3 of dp, which has no door here.")

    def test_a_door_that_gives_no_answer_may_be_that_of_the_rank_that_is_waited_for(self):
        self.process([group(0, AllReduce=42)], [operation(0, "peer_or_network", 1)])
        self.listen(self.doors / f"door-{os.getpid()}-1-99.sock", b'{"cut')
        run = self.ringmain("door", "stalled", "--all")
        self.assertEqual((run.returncode, run.stdout.splitlines()[-1]), (1, "They wait for rank 1 of dp, which has no door here that answered."))
        self.assertEqual(run.stderr.count("door-"), 1, run.stderr)

    def test_a_launcher_that_follows_nothing_is_no_failure_of_those_that_do(self):
        sentence = "nobody follows operations in this process"
        path = self.doors / f"door-{os.getpid()}-1-99.sock"
        self.listen(path, f"ringmain: {sentence}\n\n".encode())
        self.assertIn(sentence, self.complained("stalled", "--all"))
        self.process([group(0, AllReduce=42)], [operation(0, "peer_or_network", 1)])
        run = self.ringmain("door", "stalled", "--all")
        self.assertEqual((run.returncode, run.stderr), (0, f"ringmain: {path}: {sentence}\n"))
        self.assertEqual(run.stdout.splitlines()[-1], "They wait for rank 1 of dp, which has no door here.")
        rows = json.loads(self.said("stalled", "--all", "--json"))["doors"]
        self.assertEqual([row["error"] for row in rows], [None, sentence])
        named = self.ringmain("door", "stalled", path, self.doors / f"door-{os.getpid()}-1-1.sock")
        self.assertEqual(named.returncode, 1)

    def test_a_name_makes_no_line_of_its_own(self):
        wild = "dp\nThey wait for rank 7"
        self.process([group(0, wild, AllReduce=42)], [operation(0, "peer_or_network", 1, name=wild)])
        self.process()
        self.assertEqual(self.verdict(), "They wait for rank 1 of dp\\u000aThey wait for rank 7, which has no door here.")

    def test_several_are_named_once_each(self):
        for rank in (0, 1):
            self.process([group(rank, AllReduce=42)], [operation(rank, "kernel_running")])
        self.process([group(2)])
        self.process([group(3, AllReduce=41)])
        self.assertEqual(self.verdict(), "They wait for rank 2 of dp (process 4703), which has not called AllReduce 42 of dp; and for "
                                         "rank 3 of dp (process 4704), which has not called AllReduce 42 of dp.")

    def test_nobody_is_named_where_the_answers_do_not_show_it(self):
        waits = operation(0, "kernel_running")
        for what, first, second in (
                ("they wait for each other", {"operations": [operation(0, "peer_or_network", 1)]},
                 {"operations": [operation(1, "peer_or_network", 0)]}),
                ("it runs", {"operations": [operation(0, "kernel_running", waited=0.9)]}, {"groups": [group(1, AllReduce=41)]}),
                ("its part is over", {"operations": [operation(0, "peer_or_network", 1)]}, {}),
                ("it is at work", {"operations": [operation(0, "peer_or_network", 1)]},
                 {"operations": [operation(1, "own_gpu_late", waited=0.1)]}),
                ("NCCL was not asked there yet", {"operations": [waits]}, {"groups": [group(1, AllReduce=41)], "asked": 59}),
                ("its answer is older", {"operations": [waits]}, {"groups": [group(1, AllReduce=41)], "now": NOW - 60 * SECOND}),
                ("another changed what is asked", {"operations": [waits]}, {"groups": [group(1, AllReduce=41)], "masked": True}),
                ("starts are missing", {"operations": [waits]}, {"groups": [group(1, AllReduce=41)], "no_room": 1}),
                ("another communicator", {"operations": [waits]}, {"groups": [group(1, communicator=9, AllReduce=41)]}),
                ("two jobs", {"operations": [waits]}, {"groups": [group(0, AllReduce=41), group(1, AllReduce=41)]})):
            with self.subTest(what):
                for path in self.sockets():
                    path.unlink()
                self.process(**{"groups": [group(0, AllReduce=42)], **first})
                self.process(**{"groups": [group(1, AllReduce=42)], **second})
                self.assertIsNone(self.verdict())

    def test_what_is_no_such_answer_is_a_sentence_and_nothing_wild_gets_onto_a_terminal(self):
        wild = "\x1b[31m\u009b\n"
        self.process([group(0, wild), {"sequences": [], "last": 3, "rank": "x"}, 5], [operation(0, wild, func=wild), {}, None], masked=1)
        for answer in ({"pid": 1}, {"sources": 3}, {"sources": [{"source": "another"}]}):
            self.made += 1
            self.listen(self.doors / f"door-{os.getpid()}-1-{self.made}.sock", json.dumps(answer).encode() + b"\n\n")
        run = self.ringmain("door", "stalled", "--all")
        self.assertEqual((run.returncode, run.stderr.count("is not what hangs")), (1, 3), run.stderr)
        self.assertNotRegex(run.stdout + run.stderr, r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
        rows = json.loads(self.ringmain("door", "stalled", "--all", "--json").stdout)["doors"]
        self.assertEqual([row["answer"] is None for row in rows], [False, True, True, True])


if __name__ == "__main__":
    sys.exit(main())
