"""A program whose NCCL is heard by all that can: PyTorch's process group, the wrapper's header, the preload and the plugin.

usage: all_four_program.py LIBRARY

The group is one of PyTorch's whose backend is in Python, and calls LIBRARY (tests/adapters/nccl/programs/all_four.cpp), a NCCL
without a GPU. Prints what it called for, in order: a JSON list of [how, above, what].
"""

import ctypes
import json
import sys

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import AllgatherOptions, _create_work_from_future

library = ctypes.CDLL(sys.argv[1])
HEADER, SYMBOL = 1, 0


def checked(result):
    assert result == 0, result


class Played(dist.ProcessGroup):
    """Its methods are called by PyTorch's own, which are those that are heard."""

    how = SYMBOL
    in_group = False

    group_name = "0"  # which PyTorch has of groups with a backend in C++ only
    group_desc = "default_pg"

    def getBackendName(self):
        return "played"

    def call(self, op, tensors):
        if self.in_group:
            checked(library.four_group_start(self.how))
        checked(library.four_call(op, self.how))
        if self.in_group:
            checked(library.four_group_end(self.how))
        done = torch.futures.Future()
        done.set_result(tensors)
        return _create_work_from_future(done)

    def allreduce(self, tensors, opts=None):
        return self.call(b"all_reduce", tensors)

    def broadcast(self, tensors, opts=None):
        return self.call(b"broadcast", tensors)

    def allgather(self, outputs, tensors, opts=None):
        return self.call(b"all_gather", outputs[0])


def main():
    dist.Backend.register_backend("played", lambda store, rank, size, timeout: Played(rank, size), devices=["cpu"])
    dist.init_process_group("played", rank=1, world_size=4, store=dist.HashStore())
    group = dist.group.WORLD
    checked(library.four_open(group.group_name.encode(), 1, 4))
    tensor, gathered, torchs = torch.ones(4), [torch.ones(4) for _ in range(4)], dist.ProcessGroup
    above = {"all_reduce": lambda: torchs.allreduce(group, [tensor], dist.AllreduceOptions()),
             "all_gather": lambda: torchs.allgather(group, [gathered], [tensor], AllgatherOptions()),
             "broadcast": lambda: torchs.broadcast(group, [tensor], dist.BroadcastOptions())}
    called = []
    for how in (HEADER, SYMBOL):
        group.how = how
        for group.in_group in (False, True):
            for op, call in above.items():
                call()
                called.append(["header" if how else "symbol", True, op])
    for how in (HEADER, SYMBOL):  # by the program itself
        for op in above:
            checked(library.four_call(op.encode(), how))
            called.append(["header" if how else "symbol", False, op])
    # One group of both: the header begins it, a symbol's call is in it.
    checked(library.four_group_start(HEADER))
    for how in (HEADER, SYMBOL):
        checked(library.four_call(b"all_reduce", how))
        called.append(["header" if how else "symbol", False, "all_reduce"])
    checked(library.four_group_end(SYMBOL))
    assert library.four_run_kernels() == sum(op != "broadcast" for _, _, op in called)
    checked(library.four_close())
    dist.destroy_process_group()
    print(json.dumps(called))


main()
