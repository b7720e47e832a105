"""A program with hooks on its process groups, which keeps a log of its own: what it called for, what was refused, and what its
hooks were told.

usage: hooks_program.py FOLDER

Each rank leaves FOLDER/log.RANK.json. Hooks come and go from a second thread meanwhile. A hook refuses what is larger than a
budget, on every rank.
"""

import json
import os
import sys
import threading
from pathlib import Path

import torch
import torch.distributed as dist
from ringmain import comms
from ringmain.torch import CollectiveVetoed

BUDGET_BYTES = 4096


def text_of(*tensors):
    """As collective.shapes says it."""
    return " ".join(f"{str(t.dtype).removeprefix('torch.')}[{','.join(map(str, t.shape))}]" for t in tensors)


class Log:
    def __init__(self):
        self.calls, self.refused, self.before, self.after = [], [], [], []

    def call(self, op, group, inputs, outputs, function):
        said = {"op": op, "group": group.group_name, "input": text_of(*inputs), "output": text_of(*outputs),
                "number": group._get_sequence_number_for_group() + 1}
        try:
            function()
        except CollectiveVetoed as refusal:
            self.refused.append(said | {"reason": refusal.reason})
            assert group._get_sequence_number_for_group() + 1 == said["number"], "the backend was called"
        else:
            self.calls.append(said)


def budget(args):
    if sum(tensor.nbytes for tensor in args.inputs) > BUDGET_BYTES:
        return f"more than {BUDGET_BYTES} bytes"
    return None


def hook(log, group):
    hooks = comms.hooks_of(group)
    hooks.register_pre_hook(lambda args: log.before.append([args.op_id, args.name.value, args.group]))
    hooks.register_pre_hook(budget)
    hooks.register_post_hook(lambda op_id, args: log.after.append([op_id, args.outcome]))
    return hooks


def steps(log, group, world):
    for rows in (1, 5, 40):
        gradient, whole = torch.ones(rows, 64), torch.zeros(world * rows, 64)
        each = [torch.zeros(rows, 64) for _ in range(world)]
        log.call("all_reduce", group, [gradient], [gradient], lambda: dist.all_reduce(gradient, group=group))
        log.call("all_gather", group, [gradient], each, lambda: dist.all_gather(each, gradient, group=group))
        log.call("all_gather", group, [gradient], [whole], lambda: dist.all_gather_into_tensor(whole, gradient, group=group))
        log.call("broadcast", group, [gradient.int()], [gradient.int()], lambda: dist.broadcast(gradient.int(), 0, group=group))
        log.call("reduce_scatter", group, each, [gradient], lambda: dist.reduce_scatter(gradient, each, group=group))
        log.call("barrier", group, [], [], lambda: dist.barrier(group=group))


def main():
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", rank=rank, world_size=world, init_method=f"file://{folder / 'meeting'}")
    log, everybody = Log(), dist.distributed_c10d._get_default_group()
    pair = dist.new_group(list(range(min(world, 2))), group_desc="a pair")
    mine = [everybody, pair] if rank < 2 else [everybody]
    all_hooks = [hook(log, group) for group in mine]
    over, rounds = threading.Event(), []

    def churn():
        while not over.is_set():
            handles = [hooks.register_pre_hook(lambda args: None, priority=1) for hooks in all_hooks]
            handles += [hooks.register_completion_hook(lambda end: None) for hooks in all_hooks]
            rounds.append({handle.remove() for handle in handles})

    thread = threading.Thread(target=churn)
    thread.start()
    done = 0
    while done < 10:
        for group in mine:
            steps(log, group, dist.get_world_size(group))
        done += 1
    over.set()
    thread.join()
    assert rounds and set().union(*rounds) == {"done"}
    for group in mine[1:]:
        dist.destroy_process_group(group)
    dist.destroy_process_group()
    for hooks in all_hooks:
        try:
            hooks.register_pre_hook(budget)
        except ValueError as ended:
            assert "has ended" in str(ended)
        else:
            sys.exit("a hook was taken by a group that has ended")
    (folder / f"log.{rank}.json").write_text(json.dumps(vars(log)))


if __name__ == "__main__":
    main()
