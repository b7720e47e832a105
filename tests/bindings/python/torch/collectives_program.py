"""A program that calls for every kind of collective, and keeps a log of its own. It knows nothing of ringmain, unless it
is asked to let subscribers come and go meanwhile.

usage: collectives_program.py FOLDER [--late] [--killed] [--churn]

Each rank leaves FOLDER/log.RANK.json: its calls, with the group's number before and after each, what PyTorch's recorder
holds, and what failed. Without MASTER_ADDR the ranks meet by a file in FOLDER.
"""

import argparse
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

LATE_S = 0.3


class Log:
    """What this rank has called for."""

    def __init__(self):
        self.calls = []
        self.failures = []

    def call(self, op, group, function, **more):
        """Calls it, and writes down under which numbers."""
        before = group._get_sequence_number_for_group()
        said = {"op": op, "group": group.group_name, "before": before, **more}
        result = function()
        said["after"] = group._get_sequence_number_for_group()
        self.calls.append(said)
        return result

    def write(self, folder, rank):
        entries = json.loads(torch._C._distributed_c10d._dump_fr_trace_json()).get("entries", [])
        kept = [{key: entry[key] for key in ("process_group", "profiling_name", "op_id", "collective_seq_id")} for entry in entries]
        (folder / f"log.{rank}.json").write_text(json.dumps({"calls": self.calls, "failures": self.failures, "recorder": kept}))


def called_by_python(log, group, rank, world):
    x = torch.ones(6)
    each = [torch.ones(6) for _ in range(world)]
    many = torch.ones(6 * world)
    of_rank_0 = each if rank == 0 else None
    log.call("all_reduce", group, lambda: dist.all_reduce(x, group=group))
    log.call("all_reduce", group, lambda: dist.all_reduce(x, group=group, async_op=True).wait())
    log.call("broadcast", group, lambda: dist.broadcast(x, 0, group=group))
    log.call("reduce", group, lambda: dist.reduce(x, 0, group=group))
    log.call("all_gather", group, lambda: dist.all_gather(each, x, group=group))
    log.call("all_gather", group, lambda: dist.all_gather_into_tensor(many, x, group=group))
    log.call("gather", group, lambda: dist.gather(x, of_rank_0, 0, group=group))
    log.call("scatter", group, lambda: dist.scatter(x, of_rank_0, 0, group=group))
    log.call("reduce_scatter", group, lambda: dist.reduce_scatter(x, each, group=group))
    log.call("reduce_scatter", group, lambda: dist.reduce_scatter_tensor(x, many, group=group))
    log.call("all_to_all", group, lambda: dist.all_to_all([torch.ones(6) for _ in range(world)], each, group=group))
    log.call("all_to_all", group, lambda: dist.all_to_all_single(torch.ones(6 * world), many, group=group))
    if rank == 0:
        log.call("send", group, lambda: dist.send(x, 1, group=group), to=1)
    if rank == 1:
        log.call("recv", group, lambda: dist.recv(x, 0, group=group), to=0)
    log.call("barrier", group, lambda: dist.barrier(group=group))


def called_by_cpp(model, group):
    functional.all_reduce(torch.ones(3), "sum", group).sum().item()
    functional.all_gather_tensor(torch.ones(3), 0, group).sum().item()
    model(torch.ones(2, 8)).sum().backward()


def one_is_late(log, group, rank, world):
    """The last rank comes LATE_S after all others are in it."""
    store = dist.distributed_c10d._get_default_store()
    if rank == world - 1:
        store.wait([f"issued.{other}" for other in range(world - 1)])
        time.sleep(LATE_S)
        log.call("all_reduce", group, lambda: dist.all_reduce(torch.ones(6), group=group))
    else:
        work = log.call("all_reduce", group, lambda: dist.all_reduce(torch.ones(6), group=group, async_op=True), late=True)
        store.set(f"issued.{rank}", "")
        work.wait()


def one_is_killed(log, group, rank, world):
    """The last rank dies while all others are in an all-reduce, which fails there."""
    store = dist.distributed_c10d._get_default_store()
    if rank == world - 1:
        store.wait([f"issued.{other}" for other in range(world - 1)])
        os.kill(os.getpid(), signal.SIGKILL)
    work = log.call("all_reduce", group, lambda: dist.all_reduce(torch.ones(6), group=group, async_op=True), killed=True)
    store.set(f"issued.{rank}", "")
    try:
        work.wait()
    except RuntimeError as error:
        log.failures.append(str(error))
    else:
        sys.exit("an all-reduce with a dead rank has completed")


class Churn:
    """Subscribers that come and go in a second thread."""

    def __init__(self):
        import ringmain
        import ringmain.torch

        self._bus = ringmain.Bus.process()
        self._attachment = ringmain.torch.attach(self._bus)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.rounds = 0
        self._thread.start()

    def _run(self):
        while not self._over.is_set():
            heard = self._bus.subscribe("collective.*", lambda batch: None)
            judge = self._bus.subscribe_inline("collective.issued", lambda event: None)
            self.rounds += 1
            judge.remove()
            heard.remove()

    def end(self):
        self._over.set()
        self._thread.join()
        assert self.rounds
        report = self._attachment.report()["torch.distributed"]
        assert report.live and not report.errors, report


def main():
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    for name in ("late", "killed", "churn"):
        options.add_argument(f"--{name}", action="store_true")
    asked = options.parse_args()
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    meeting = {} if "MASTER_ADDR" in os.environ else {"init_method": f"file://{asked.folder / 'meeting'}"}
    dist.init_process_group("gloo", rank=rank, world_size=world, **meeting)
    log, everybody = Log(), dist.distributed_c10d._get_default_group()
    churn = Churn() if asked.churn else None
    pair = dist.new_group([0, 1], group_desc="a pair")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    for _ in range(3):
        called_by_python(log, everybody, rank, world)
        called_by_cpp(model, everybody)
        if rank < 2:
            called_by_python(log, pair, rank, 2)
    if asked.late:
        one_is_late(log, everybody, rank, world)
    if asked.killed:
        one_is_killed(log, everybody, rank, world)
    log.write(asked.folder, rank)
    if churn is not None:
        churn.end()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
