#!/usr/bin/env python3
"""Does `ringmain run --source mpi` hear exactly what ranks ask of a real MPI?

usage: mpi_run_test.py TESTCASE, with the program in $RINGMAIN_BINARY and the test programs in the variables below
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from cases import main

BINARY = os.environ["RINGMAIN_BINARY"]
PROGRAMS = Path(os.environ["RINGMAIN_MPI_PROGRAMS"])
LOADER, FAKE_USER, HOOKS, OUTER, PRELOAD = (os.environ[f"RINGMAIN_MPI_{name}"]
                                            for name in ("LOADER", "FAKE_USER", "HOOKS", "OUTER", "PRELOAD"))
RANKS = range(4)
OPERATIONS = ("collective.issued", "collective.completed", "collective.failed")
# As root, on fewer cores than ranks, and without a way to other hosts.
LAUNCH = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
          "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_plm_rsh_agent": "false"}
COLLECTIVES = """barrier broadcast gather gather_v scatter scatter_v all_gather all_gather_v all_to_all all_to_all_v
all_to_all_w reduce all_reduce reduce_scatter_v reduce_scatter scan exclusive_scan neighbor_all_gather
neighbor_all_gather_v neighbor_all_to_all neighbor_all_to_all_v neighbor_all_to_all_w""".split()
# What each rank of collectives.c gives and gets, in ints: of those where ranks differ, a list.
MOVED = {"barrier": (0, 0), "broadcast": ([0, 1, 0, 0], [1, 0, 1, 1]), "gather": (1, [0, 0, 4, 0]),
         "gather_v": ([1, 2, 1, 2], [6, 0, 0, 0]), "scatter": ([0, 0, 0, 4], 1), "scatter_v": ([6, 0, 0, 0], [1, 2, 1, 2]),
         "all_gather": (1, 4), "all_gather_v": ([1, 2, 1, 2], 6), "all_to_all": (4, 4), "all_to_all_v": (4, 4),
         "all_to_all_w": (4, 4), "reduce": (2, [2, 0, 0, 0]), "all_reduce": (1, 1), "reduce_scatter_v": (6, [1, 2, 1, 2]),
         "reduce_scatter": (4, 1), "scan": (1, 1), "exclusive_scan": (1, 1), "neighbor_all_gather": (1, 2),
         "neighbor_all_gather_v": (1, 2), "neighbor_all_to_all": (2, 2), "neighbor_all_to_all_v": (2, 2),
         "neighbor_all_to_all_w": (2, 2)}
ROOTS = {"broadcast": 1, "gather": 2, "gather_v": 0, "scatter": 3, "scatter_v": 0, "reduce": 0}
# The same of groups.c, between rank 0 and the others: of rank 0, and of each other.
BETWEEN = {"broadcast": ((1, 0), (0, 1)), "gather": ((0, 3), (1, 0)), "reduce": ((0, 1), (1, 0)), "scatter": ((3, 0), (0, 1)),
           "all_gather": ((1, 3), (1, 1)), "all_reduce": ((1, 1), (1, 1)), "barrier": ((0, 0), (0, 0))}


class MpiRunTest(unittest.TestCase):
    kind = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def program(self, name):
        path = PROGRAMS / f"{name}.{self.kind}"
        if not path.exists():
            self.skipTest(f"there is no {path.name}: no headers of {self.kind} were found, or no Fortran compiler")
        return str(path)

    def launcher(self):
        found = shutil.which(f"mpirun.{self.kind}")
        if found is None:
            self.skipTest(f"there is no mpirun.{self.kind}")
        trial = subprocess.run([found, "-n", "4", "true"], capture_output=True, text=True, timeout=100, check=False,
                               env={**os.environ, **LAUNCH})
        if trial.returncode != 0:
            self.skipTest(f"mpirun.{self.kind} starts nothing here: {trial.stderr.strip()[:200]}")
        return [found, "-n", "4"]

    def run_it(self, *command, status=0, summary=True, source="mpi"):
        """Runs `command` on 4 ranks; the events of each."""
        run = subprocess.run([BINARY, "run", "--source", source, "--sink", f"json_lines:{self.folder}/%r.jsonl",
                              *(["--summary"] if summary else []), "--", *self.launcher(), *command],
                             capture_output=True, text=True, timeout=200, check=False, env={**os.environ, **LAUNCH})
        if status is not None:
            self.assertEqual(run.returncode, status, run.stderr + run.stdout)
        self.said = run.stderr
        return [self.events(rank) for rank in RANKS]

    def lines(self, rank):
        return [json.loads(line) for line in (self.folder / f"{rank}.jsonl").read_text().splitlines()]

    def events(self, rank):
        """What became of operations."""
        return [event for event in self.lines(rank) if event["channel"] in OPERATIONS]

    def beside(self, rank, channel):
        """What is around them: group, wait, abort."""
        return [event for event in self.lines(rank) if event["channel"] == f"collective.{channel}"]

    def counts(self, events):
        """How often each operation was issued, completed and failed."""
        return Counter((event["channel"].removeprefix("collective."), event["op"]) for event in events)

    def exactly(self, ranks, **operations):
        """Each rank asked for these operations as often, and each of them completed once, with the same id."""
        for events in ranks:
            self.assertEqual(self.counts(events), Counter({(what, op): n for op, n in operations.items()
                                                           for what in ("issued", "completed")}))
            ids = [Counter(event["op_id"] for event in events if event["channel"] == channel)
                   for channel in ("collective.issued", "collective.completed")]
            self.assertEqual(ids[0], ids[1])
            self.assertEqual(set(ids[0].values()), {1})
            self.assertTrue(all(event["thread"] > 0 for event in events))
        # In the job, origin and op_id name an operation.
        self.assertEqual(len({event["origin"] for events in ranks for event in events}), len(ranks))
        for rank in range(len(ranks)):
            process = self.lines(rank)[0]["origin_process"]
            self.assertEqual((process["rank"], process["world_size"]), (rank, len(ranks)))
            self.assertTrue(all(event["source"] == "mpi" for event in self.lines(rank)))

    def of(self, events, channel, op):
        return [event for event in events if event["channel"] == f"collective.{channel}" and event["op"] == op]


class OfOneMpi:
    """What holds of each MPI."""

    def test_every_collective_is_heard_twice_with_what_it_moves(self):
        ranks = self.run_it(self.program("collectives"))
        self.exactly(ranks, **{op: 2 for op in COLLECTIVES})
        for rank, events in enumerate(ranks):
            groups = {event["group"]: event for event in self.beside(rank, "group")}
            self.assertEqual(set(groups), {"MPI_COMM_WORLD", "ring"})
            waits = self.beside(rank, "wait")
            beside = sum(len(self.beside(rank, channel)) for channel in ("group", "shapes", "wait"))
            self.assertIn(f"rank {rank}): {88 + beside} events, 0 lost", self.said)
            shapes = {event["op_id"]: event for event in self.beside(rank, "shapes")}
            self.assertEqual(set(shapes), {event["op_id"] for event in events})
            self.assertEqual([event["edge"] for event in waits], ["begin", "end"] * (len(waits) // 2))
            for op in COLLECTIVES:
                moved = [side[rank] if isinstance(side, list) else side for side in MOVED[op]]
                issued = sorted(self.of(events, "issued", op), key=lambda event: event["event_sequence"])
                self.assertEqual([event["asynchronous"] for event in issued], [False, True], op)
                for event in issued:
                    self.assertEqual([event["in_elements"], event["out_elements"]], moved, (op, rank))
                    self.assertEqual(event["bytes"], 4 * max(moved), op)
                    self.assertEqual(event["peer"], ROOTS.get(op, -1), op)
                    self.assertEqual((event["rank"], event["group_size"], event["backend"]), (rank, 4, "mpi"))
                    self.assertEqual(event["group"], "ring" if "neighbor" in op else "MPI_COMM_WORLD")
                    self.assertEqual(event["dtype"], "int32" if any(moved) else "")
            for group, count in (("MPI_COMM_WORLD", 34), ("ring", 10)):
                numbers = [event["event_sequence"] for event in events
                           if event["group"] == group and event["channel"] == "collective.issued"]
                self.assertEqual(numbers, list(range(1, count + 1)))
            self.assertTrue(all(event["duration_ns"] > 0 for event in events if "completed" in event["channel"]))

    def test_other_communicators_and_types_are_heard_for_what_they_are(self):
        for rank, events in enumerate(self.run_it(self.program("groups"))):
            issued = [event for event in events if event["channel"] == "collective.issued"]
            between = {event["op"]: event for event in issued if event["group"] == "between"}
            self.assertEqual({op: (event["in_elements"], event["out_elements"]) for op, event in between.items()},
                             {op: sides[min(rank, 1)] for op, sides in BETWEEN.items()})
            self.assertEqual({(event["rank"], event["group_size"]) for event in between.values()},
                             {(0, 1) if rank == 0 else (rank - 1, 3)})
            made = next(event for event in issued if event["dtype"] == "derived")
            self.assertEqual((made["op"], made["bytes"], made["peer"]), ("broadcast", 32, 0))
            # Each of them was another communicator, though its handle came again.
            copies = [event["event_sequence"] for event in issued if event["group"] == "copy"]
            self.assertEqual(copies, [1] * 6000)
            self.assertEqual(len(events), 2 * len(issued))

    def test_blocking_sends_and_receives_are_heard_exactly(self):
        ranks = self.run_it(self.program("points"), "blocking")
        self.exactly(ranks, send=4, recv=4, send_recv=2, barrier=1)
        for rank, events in enumerate(ranks):
            first = self.of(events, "issued", "recv")[0]  # room for four, and two came
            self.assertEqual((first["peer"], first["bytes"], first["dtype"]), ((rank + 3) % 4, 32, "float64"))
            end = next(event for event in events if event["op_id"] == first["op_id"] and "completed" in event["channel"])
            self.assertEqual(end["bytes"], 16)
            self.assertEqual(self.of(events, "issued", "send")[0]["peer"], (rank + 1) % 4)
            self.assertEqual(self.of(events, "issued", "recv")[1]["peer"], -1)  # from any

    def test_each_way_to_wait_ends_each_request_once(self):
        ranks = self.run_it(self.program("points"), "waits")
        self.exactly(ranks, send=27, recv=27, barrier=1)
        for events in ranks:
            self.assertTrue(all(event["asynchronous"] for event in self.of(events, "issued", "recv")))

    def test_groups_are_told_when_they_are_first_used_and_when_they_end(self):
        self.run_it(self.program("groups"))
        for rank in RANKS:
            said = self.beside(rank, "group")
            alive = Counter()
            for event in said:  # as many end as were made, and none before
                alive[event["group"]] += {"made": 1, "ended": -1}[event["change"]]
                self.assertGreaterEqual(alive[event["group"]], 0, event)
                self.assertLessEqual(alive[event["group"]], 1, event)
            self.assertEqual(alive["copy"], 0)
            self.assertEqual(alive["MPI_COMM_WORLD"], 1, "nobody frees it")
            made = {event["group"]: event for event in said if event["change"] == "made"}
            ended = {event["group"]: event for event in said if event["change"] == "ended"}
            world, own, between = made["MPI_COMM_WORLD"], made["MPI_COMM_SELF"], made["between"]
            self.assertEqual((world["rank"], world["group_size"], world["ranks"]), (rank, 4, "0-3"))
            self.assertEqual((own["rank"], own["group_size"], own["ranks"]), (0, 1, str(rank)))
            # An intercommunicator: the side that this process is on.
            self.assertEqual((between["group_size"], between["ranks"]), (1, "0") if rank == 0 else (3, "1-3"))
            self.assertEqual(ended["between"]["operations"], len(BETWEEN))
            self.assertEqual(ended["copy"]["operations"], 1)

    def test_a_thread_that_waits_says_for_what(self):
        for rank, events in enumerate(self.run_it(self.program("points"), "waits")):
            issued = {event["op_id"]: event for event in events if event["channel"] == "collective.issued"}
            open_waits = {}
            for event in self.beside(rank, "wait"):
                self.assertGreater(event["operations"], 0)
                if event["op_id"] != 0:
                    self.assertEqual((event["op"], event["operations"]), (issued[event["op_id"]]["op"], 1))
                if event["edge"] == "begin":
                    self.assertNotIn(event["thread"], open_waits)
                    open_waits[event["thread"]] = event
                    self.assertEqual(event["duration_ns"], 0)
                else:
                    self.assertEqual(open_waits.pop(event["thread"])["op_id"], event["op_id"])
                    self.assertGreater(event["duration_ns"], 0)
            self.assertEqual(open_waits, {})
            self.assertIn(0, {event["op_id"] for event in self.beside(rank, "wait")}, "Waitall waits for several")

    def test_persistent_requests_are_heard_as_often_as_they_are_started(self):
        self.exactly(self.run_it(self.program("points"), "persistent"), send=6, recv=6)

    def test_cancelled_freed_and_watched_requests_end_at_most_once(self):
        for rank, events in enumerate(self.run_it(self.program("points"), "odd")):
            self.assertEqual(self.counts(events), Counter({("issued", "recv"): 3, ("issued", "send"): 4, ("failed", "recv"): 1,
                                                           ("completed", "recv"): 2, ("completed", "send"): 3,
                                                           ("failed", "send"): 1}))
            freed = self.of(events, "failed", "send")[0]
            self.assertEqual((freed["how"], freed["reason"]), ("unknown", "its request was freed"))
            cancelled = self.of(events, "failed", "recv")[0]
            self.assertEqual((cancelled["reason"], cancelled["how"]), ("cancelled", "cancelled"))
            nobody = self.of(events, "issued", "send")[0]
            self.assertEqual((nobody["peer"], nobody["bytes"]), (-1, 0), rank)

    def test_a_call_that_fails_says_so_with_the_class_of_the_error(self):
        for events in self.run_it(self.program("points"), "errors"):
            self.assertEqual(self.counts(events), Counter({("issued", "recv"): 1, ("issued", "send"): 3, ("issued", "broadcast"): 1,
                                                           ("failed", "recv"): 1, ("failed", "send"): 2, ("failed", "broadcast"): 1,
                                                           ("completed", "send"): 1}))
            for op, reason in (("send", "rank"), ("recv", "truncated"), ("broadcast", "datatype")):
                for event in self.of(events, "failed", op):
                    self.assertIn(reason, event["reason"].lower())
                    self.assertEqual(event["how"], "error")
                    self.assertGreater(event["result"], 0)

    def test_threads_and_their_communicators_are_heard_exactly(self):
        ranks = self.run_it(self.program("threads"), status=None)
        if any("no MPI_THREAD_MULTIPLE" in self.said for _ in ranks):
            self.skipTest(f"{self.kind} has no MPI_THREAD_MULTIPLE here")
        self.exactly(ranks, send=800, recv=800, all_reduce=800)
        for events in ranks:
            reductions = self.of(events, "issued", "all_reduce")
            self.assertEqual(Counter(event["event_sequence"] for event in reductions), {n: 4 for n in range(1, 201)})

    def test_inside_another_sources_operation_mpi_issues_nothing_and_ends_it_once(self):
        for rank, events in enumerate(self.run_it(self.program("outer"), OUTER)):
            issued = [event for event in events if event["channel"] == "collective.issued"]
            self.assertEqual([(event["op"], event["source"]) for event in issued],
                             [("all_reduce", "outer"), ("barrier", "outer"), ("all_reduce", "outer"), ("broadcast", "outer"),
                              ("all_reduce", "mpi")], rank)
            ends = {event["op_id"]: event for event in events if event["channel"] != "collective.issued"}
            self.assertEqual(len(events), 2 * len(issued), "each ends once")
            first, own, asked, broadcast, last = (ends[event["op_id"]] for event in issued)
            # Whose word it is, and what of the outer one MPI knows better.
            self.assertEqual([event["source"] for event in (first, own, asked, broadcast, last)], ["mpi", "outer", "mpi", "mpi", "mpi"])
            self.assertEqual([(event["group"], event["bytes"]) for event in (first, asked, last)],
                             [("outer group", 4)] * 2 + [("MPI_COMM_WORLD", 4)])
            self.assertEqual((broadcast["channel"], broadcast["how"]), ("collective.failed", "error"))
            self.assertEqual({event["op_id"] for event in self.beside(rank, "wait")}, {asked["op_id"]})

    def test_hooks_are_called_around_each_call_and_at_each_end(self):
        for events in self.run_it(self.program("hooks"), HOOKS, "calls"):
            ids = Counter((event["channel"] == "collective.issued", event["op_id"]) for event in events)
            self.assertEqual(set(ids.values()), {1})
            self.assertEqual({op_id for issued, op_id in ids if issued}, {op_id for issued, op_id in ids if not issued})
            self.assertEqual([event["how"] for event in events if event["channel"] == "collective.failed"], ["error"])
        for rank in RANKS:
            said = [(event["group"], event["change"], event["parent"], event["hooks"]) for event in self.beside(rank, "group")
                    if event["group"] in ("copy", "renamed")]
            self.assertEqual(said, [("copy", "made", "", 0), ("renamed", "split", "copy", 4), ("copy", "ended", "", 0),
                                    ("renamed", "ended", "copy", 0)])

    def test_a_veto_makes_no_call_and_leaves_a_whole_record(self):
        for events in self.run_it(self.program("hooks"), HOOKS, "veto", source="mpi:veto"):
            issued = Counter(event["op"] for event in events if event["channel"] == "collective.issued")
            self.assertEqual(issued, {"all_reduce": 2, "barrier": 1, "recv": 2})
            vetoed = [event for event in events if event["channel"] == "collective.failed"]
            self.assertEqual([(event["op"], event["how"], event["reason"]) for event in vetoed],
                             [(op, "vetoed", "the test said no") for op in ("all_reduce", "recv", "recv")])

    def test_a_veto_that_was_not_asked_for_is_said_once_and_not_followed(self):
        for events in self.run_it(self.program("hooks"), HOOKS, "no_veto"):
            self.assertEqual(self.counts(events), {(what, op): n for what in ("issued", "completed")
                                                   for op, n in (("all_reduce", 2), ("barrier", 1))})
        said = "a hook refused all_reduce on MPI_COMM_WORLD (the test said no), which went on: hooks may refuse"
        self.assertEqual([self.said.count(words) for words in (said, "a hook refused")], [len(RANKS)] * 2, self.said)

    def test_a_veto_ends_the_job_where_the_program_set_no_error_handler(self):
        run = subprocess.run([BINARY, "run", "--source", "mpi:veto", "--summary", "--", *self.launcher(), self.program("hooks"), HOOKS,
                              "fatal"], capture_output=True, text=True, timeout=200, check=False, env={**os.environ, **LAUNCH})
        # 1 and 2 are the program's own. What a dying job writes may be lost on its way.
        self.assertNotIn(run.returncode, (0, 1, 2), run.stderr)
        self.assertNotIn("it goes on", run.stderr)

    def test_abort_hooks_run_before_the_program_aborts(self):
        self.run_it(self.program("hooks"), HOOKS, "abort", status=None)
        self.assertIn("abort hook: MPI_Abort with error code 7", self.said)
        said = self.beside(2, "abort")
        self.assertEqual([(event["edge"], event["hooks"], event["stuck"]) for event in said], [("begin", 0, 0), ("end", 1, 0)])

    def test_ids_are_never_used_again_by_another_communicator(self):
        for events in self.run_it(self.program("groups")):
            ids = Counter(event["op_id"] for event in events if event["channel"] == "collective.issued")
            self.assertEqual(set(ids.values()), {1})
            self.assertGreater(len(ids), 6000)

    def test_a_library_that_is_loaded_later_is_heard(self):
        self.exactly(self.run_it(LOADER, self.program("loaded")), all_reduce=3)

    def fortran(self, program):
        ranks = self.run_it(self.program(program))
        for events in ranks:
            self.assertEqual(self.counts(events), Counter({
                **{(what, op): n for what in ("issued", "completed") for op, n in
                   {"all_reduce": 6, "all_gather": 1, "send": 3, "recv": 3, "barrier": 1, "send_recv": 1}.items()},
                ("issued", "send"): 4, ("failed", "send"): 1}))
            gathered = self.of(events, "issued", "all_gather")[0]
            self.assertEqual((gathered["in_elements"], gathered["out_elements"], gathered["dtype"]), (1, 4, "int32"))
            self.assertEqual([event["group"] for event in self.of(events, "issued", "all_reduce")],
                             ["tensor parallel"] * 5 + ["MPI_COMM_WORLD"])
            self.assertEqual(self.of(events, "issued", "all_reduce")[0]["dtype"], "float64")

    def test_fortran_with_mpif_h_is_heard_exactly(self):
        self.fortran("fortran_mpifh")

    def test_fortran_with_mpi_f08_is_heard_exactly(self):
        self.fortran("fortran_f08")

    def test_a_rank_that_aborts_has_said_what_came_before(self):
        self.run_it(self.program("points"), "abort", status=None)
        self.assertEqual(self.counts(self.events(2)), {("issued", "barrier"): 1, ("completed", "barrier"): 1})
        said = self.beside(2, "abort")
        self.assertEqual([(event["edge"], event["group"], event["asked_by"]) for event in said],
                         [(edge, "MPI_COMM_WORLD", "application") for edge in ("begin", "end")])
        self.assertIn("error code", said[0]["reason"])

    def test_outside_of_a_run_the_preload_changes_nothing(self):
        run = subprocess.run([*self.launcher(), self.program("points"), "waits"], capture_output=True, text=True,
                             timeout=200, check=False, env={**os.environ, **LAUNCH, "LD_PRELOAD": PRELOAD})
        self.assertEqual((run.returncode, run.stderr), (0, ""))


class OpenMpiTest(OfOneMpi, MpiRunTest):
    kind = "openmpi"


class MpichTest(OfOneMpi, MpiRunTest):
    kind = "mpich"


class NowhereTest(MpiRunTest):
    def run_alone(self, *command, status=0, **environment):
        run = subprocess.run([BINARY, "run", "--source", "mpi", "--sink", f"json_lines:{self.folder}/one.jsonl", "--", *command],
                             capture_output=True, text=True, timeout=100, check=False, env={**os.environ, **environment})
        self.assertEqual(run.returncode, status, run.stderr)
        return run

    def test_a_program_without_mpi_has_nothing_of_ringmain_but_the_preload(self):
        maps = self.run_alone("cat", "/proc/self/maps").stdout
        self.assertIn("libringmain_mpi.so", maps)
        for library in ("libringmain.so", "libringmain_run.so", "libstdc++"):
            self.assertNotIn(library, maps)

    def test_a_word_that_the_source_does_not_know_is_refused_before_the_program_starts(self):
        run = subprocess.run([BINARY, "run", "--source", "mpi:vetoes", "--summary", "--", "echo", "started"], capture_output=True,
                             text=True, timeout=100, check=False)
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn("source mpi knows the word veto, and not 'vetoes'", run.stderr)

    def test_an_mpi_that_nobody_knows_is_named_and_the_program_runs(self):
        run = self.run_alone(FAKE_USER, status=3)
        self.assertIn("source mpi could not attach to mpi_fake_user", run.stderr)
        self.assertIn("Elsewhere MPI 7", run.stderr)
        self.assertEqual(len(run.stderr.splitlines()), 1)

    def test_a_missing_library_for_an_mpi_is_named_and_the_program_runs(self):
        user = PROGRAMS / "points.openmpi"
        if not user.exists():
            self.skipTest("there is no points.openmpi: no headers of openmpi were found")
        folder = Path(self.folder, "lib", "ringmain")  # it looks for others beside it and above it
        folder.mkdir(parents=True)
        alone = Path(shutil.copy(PRELOAD, folder))
        run = subprocess.run([str(user), "none"], capture_output=True, text=True, timeout=100, check=False,
                             env={**os.environ, **LAUNCH, "LD_PRELOAD": str(alone)})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("source mpi could not attach: ", run.stderr)
        self.assertIn("libringmain_mpi_openmpi.so", run.stderr)


if __name__ == "__main__":
    sys.exit(main())
