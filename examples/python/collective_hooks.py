#!/usr/bin/env python3
"""Four ranks average gradients. A hook refuses gradients that are no numbers, another one times each all_reduce.

usage: collective_hooks.py [STEPS]

With torchrun and comms.new_comm("gloo", torch.device("cpu"), name="ranks") in place of "loopback" the ranks are processes.
"""

import math
import sys

import numpy as np

import ringmain
from ringmain import comms


def check_numbers(args: comms.PreHookArgs) -> bool | str:
    finite = all(math.isfinite(np.asarray(tensor).sum()) for tensor in args.tensors)
    return finite or "a gradient is not a number"


class Times:
    """How long all_reduces took, of all ranks; called by the bus's dispatcher, so that no rank waits for it."""

    def __init__(self) -> None:
        self.ns: list[int] = []

    def __call__(self, end: comms.CompletionHookArgs) -> None:
        if end.name == comms.OpName.all_reduce and end.completed:
            self.ns.append(end.duration_ns)


def train(bus: ringmain.Bus, steps: int, times: Times) -> str:
    """One rank. Returns what was refused."""
    comm = comms.new_comm("loopback", name="ranks", bus=bus)
    rank, refused = comm.get_rank(), ""
    guard = comm.register_pre_hook(check_numbers)
    comm.register_completion_hook(times, on_dispatcher=True)
    for step in range(steps):
        gradient = np.full(1024, float(rank + step))
        if rank == 2 and step == steps // 2:
            try:
                comm.all_reduce(np.full(1024, math.nan), comms.ReduceOp.AVG, async_op=False)
            except comms.OperationVetoed as veto:
                refused = f"rank {rank} was refused at step {step}: {veto.reason}"
        work = comm.all_reduce(gradient, comms.ReduceOp.AVG, async_op=True)
        work.wait()
        assert gradient[0] == step + 1.5
    guard.remove()  # it is not called any more
    comm.finalize()
    return refused


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    times = Times()
    with ringmain.Bus("example") as bus:
        refused = comms.run_ranks(4, lambda: train(bus, steps, times))
        if not bus.flush(60):
            sys.exit("not all was heard within a minute")
    print(f"4 ranks, {steps} steps each: {len(times.ns)} all_reduce completed, the slowest {max(times.ns) // 1000} us")
    print("".join(refused))


if __name__ == "__main__":
    main()
