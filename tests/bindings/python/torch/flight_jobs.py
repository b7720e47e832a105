"""Four ranks of gloo, one of which misbehaves, and what their flight recorders leave.

usage: flight_jobs.py FOLDER FAULT…      leaves FOLDER/FAULT/rank_N of each rank that could write it, and of PyTorch's own pytorch_N

No clock decides: a rank says by its pipe where it is, and waits for the word to go on. PyTorch is loaded once, and each job is forked
from there.
"""

import datetime
import json
import os
import signal
import sys
import threading
from pathlib import Path

import torch
import torch._C._distributed_c10d as c10d
import torch.distributed as dist

import ringmain
import ringmain.torch
from ringmain import comms

RANKS = 4
CULPRIT = 2


class Rank:
    """One end of a rank's two pipes: words come and go as lines."""

    def __init__(self, reads: int, writes: int) -> None:
        self._reads, self._writes = os.fdopen(reads), os.fdopen(writes, "w")

    def say(self, word: str) -> None:
        print(word, file=self._writes, flush=True)

    def hear(self) -> str:
        """The next word; "" where the other end has gone."""
        return self._reads.readline().strip()

    def expect(self, word: str) -> None:
        heard = self.hear()
        if heard != word:
            raise SystemExit(f"a rank said {heard!r} in place of {word!r}")


def faulty_call(fault: str, rank: int) -> object:
    """The operation in which the job hangs, or does not."""
    if fault == "skips" and rank == CULPRIT:
        return dist.broadcast(torch.ones(8), 0, async_op=True)
    elements = 6 if fault == "size" and rank == CULPRIT else 4
    # Of as many bytes: gloo ends a process that gets more than it has room for.
    dtype = torch.int32 if fault == "type" and rank == CULPRIT else torch.float32
    return dist.all_reduce(torch.ones(elements, dtype=dtype), async_op=True)


def settle(recorder: comms.FlightRecorderHook) -> None:
    """Until the ends of all operations were said: another thread says them."""
    while "entries" in json.loads(recorder.dump_json(include_completed=False)):
        os.sched_yield()


def program(rank: int, folder: Path, fault: str, parent: Rank) -> None:
    os.environ["TORCHCOMM_FR_DUMP_TEMP_FILE"] = str(folder / "rank_")
    bus = ringmain.Bus(name=f"rank{rank}")
    ringmain.torch.attach(bus)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS, timeout=datetime.timedelta(seconds=600))
    recorder = comms.FlightRecorderHook(100, isolated=True, rank=rank)
    recorder.register_with_comm(dist.group.WORLD)
    for _ in range(3):
        dist.all_reduce(torch.ones(3, 4))
    dist.all_gather([torch.ones(2) for _ in range(RANKS)], torch.ones(2))
    dist.barrier()
    settle(recorder)
    parent.say("ready")
    told = parent.hear()  # the one that is asleep gets no word to go on, only one to dump
    if told == "go":
        try:
            held = faulty_call(fault, rank)
            if fault == "healthy":
                held.wait()
                settle(recorder)
        except RuntimeError:  # a neighbour is known to be dead before the call
            held = None
        parent.say("issued")
        told = parent.hear()
    if told == "dump":
        recorder.dump_file()
        (folder / f"pytorch_{rank}").write_bytes(c10d._dump_fr_trace())
        parent.say("dumped")
    parent.hear()  # until the parent goes
    os._exit(0)


def play(fault: str, ranks: list[Rank], pids: list[int]) -> None:
    for rank in ranks:
        rank.expect("ready")
    if fault == "killed":
        os.kill(pids[CULPRIT], signal.SIGKILL)
        os.waitid(os.P_PID, pids[CULPRIT], os.WEXITED | os.WNOWAIT)
    elif fault == "stopped":
        os.kill(pids[CULPRIT], signal.SIGSTOP)
        os.waitpid(pids[CULPRIT], os.WUNTRACED)
    survivors = [rank for i, rank in enumerate(ranks) if i != CULPRIT]
    going = survivors if fault in ("killed", "stopped", "asleep") else ranks
    for rank in going:
        rank.say("go")
    for rank in going:
        rank.expect("issued")
    # The culprit's dump is the last: it has had all the time that there is.
    leaving = survivors + ([ranks[CULPRIT]] if fault not in ("killed", "stopped") else [])
    for rank in leaving:
        rank.say("dump")
        rank.expect("dumped")


def run_job(folder: Path, fault: str) -> None:
    folder.mkdir()
    ranks, pids = [], []
    for rank in range(RANKS):
        to_child, to_parent = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                program(rank, folder, fault, Rank(to_child[0], to_parent[1]))
            finally:
                os._exit(1)
        os.close(to_child[0])
        os.close(to_parent[1])
        ranks.append(Rank(to_parent[0], to_child[1]))
        pids.append(pid)
    try:
        play(fault, ranks, pids)
    finally:  # they hold what a reader of our output waits for the end of
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)


if __name__ == "__main__":
    assert threading.active_count() == 1  # a fork takes this thread only
    for name in sys.argv[2:]:
        run_job(Path(sys.argv[1]) / name, name)
