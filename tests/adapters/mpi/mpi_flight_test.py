#!/usr/bin/env python3
"""Does `ringmain fr analyze` name the rank of a real MPI job that goes wrong, from the rings that its processes leave?

usage: mpi_flight_test.py TESTCASE, with the variables of mpi_run_test.py
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from mpi_run_test import BINARY, LAUNCH, RANKS, MpiRunTest, main

CULPRIT = 2
LAST = 21  # the operation in which it goes wrong


class OfOneMpi:
    def ringmain(self, *words):
        return subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, check=False)

    def rings(self):
        """What each rank's ring tells, by rank: while the job runs, as nobody waits for its writers."""
        told = self.ringmain("post-mortem", "--json", "--last", 1000, self.folder / "flight").stdout.splitlines()
        return {ring["process"]["rank"]: ring for ring in map(json.loads, told) if self.issued(ring)}

    def issued(self, ring):
        return [event["event"] for one in ring["rings"] for event in one["events"] if event["channel"] == "collective.issued"]

    def until(self, holds):
        """No clock decides: a job in which it never holds is ended by the test's own limit."""
        while not holds():
            self.assertIsNone(self.job.poll(), "the job has ended")
            time.sleep(0.01)

    def in_the_last(self, ranks):
        rings = self.rings()
        return all(rank in rings and len(self.issued(rings[rank])) >= LAST for rank in ranks)

    def start(self, how):
        go = self.folder / "go"
        program = self.program("goes_wrong")  # skips where there is none
        self.job = subprocess.Popen([BINARY, "run", "--source", "mpi", "--flight", "collective.>", "--", *self.launcher(), program, how, str(go)],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                    env={**os.environ, **LAUNCH, "RINGMAIN_FLIGHT_DIR": str(self.folder / "flight")})
        self.addCleanup(self.end)
        return go

    def end(self):
        for ring in self.rings().values():
            if ring["process"]["state"] == "alive":
                with contextlib.suppress(ProcessLookupError):  # the launcher ends the others at the first one's end
                    os.kill(ring["process"]["pid"], signal.SIGKILL)
        self.job.kill()
        self.job.wait()

    def goes_wrong(self, how):
        """The verdicts on all rings and on those of the survivors."""
        survivors = [rank for rank in RANKS if rank != CULPRIT]
        go = self.start(how)
        self.until(lambda: self.in_the_last(survivors))
        culprit = self.rings()[CULPRIT]
        go.touch()
        if how == "killed":
            self.job.wait()  # the launcher ends the others
        elif how == "stopped":
            self.until(lambda: Path(f"/proc/{culprit['process']['pid']}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T")
        elif how != "asleep":
            self.until(lambda: self.in_the_last([CULPRIT]))
        files = [ring["file"] for rank, ring in self.rings().items() if rank != CULPRIT]
        return [json.loads(self.ringmain("fr", "analyze", "--json", "--grace", 0, "--world-size", len(RANKS), *given).stdout)
                for given in ([self.folder / "flight"], files)]

    def named(self, how, kind):
        verdict, without = self.goes_wrong(how)
        first = verdict["findings"][0]
        self.assertEqual((first["kind"], first["culprits"], verdict["culprits"], first["seq"]), (kind, [CULPRIT], [CULPRIT], LAST), verdict)
        self.assertEqual(first["group"], "MPI_COMM_WORLD")
        self.assertEqual(without["missing"], [CULPRIT])
        return verdict, without

    def does_not_come(self, how):
        verdict, without = self.named(how, "not_joined")
        self.assertEqual(verdict["findings"][0]["waiting"], [0, 1, 3])
        self.assertEqual([finding["suspects"] for finding in without["findings"]], [[CULPRIT]])

    def test_a_rank_that_was_killed_is_named(self):
        self.does_not_come("killed")

    def test_a_rank_that_is_stopped_is_named(self):
        self.does_not_come("stopped")

    def test_a_rank_that_is_asleep_is_named(self):
        self.does_not_come("asleep")

    def test_a_rank_that_leaves_one_out_is_named(self):
        self.named("skips", "operation")

    def test_a_rank_with_another_size_is_named(self):
        self.named("size", "size")

    def test_a_healthy_job_has_no_finding(self):
        self.start("healthy").touch()
        self.assertEqual(self.job.wait(), 0)
        run = self.ringmain("fr", "analyze", "--json", self.folder / "flight")
        verdict = json.loads(run.stdout)
        self.assertEqual((run.returncode, verdict["findings"], verdict["operations"]), (0, [], LAST), run.stdout)


class OpenMpiTest(OfOneMpi, MpiRunTest):
    kind = "openmpi"


class MpichTest(OfOneMpi, MpiRunTest):
    kind = "mpich"


del MpiRunTest  # no test of its own


if __name__ == "__main__":
    sys.exit(main())
