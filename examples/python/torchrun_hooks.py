#!/usr/bin/env python3
"""Ranks of torchrun average gradients. A hook refuses more bytes in a step than the budget, another one counts what was issued.

usage: torchrun --standalone --nproc-per-node 2 torchrun_hooks.py [STEPS]

The hooks are on PyTorch's own group: the training loop calls torch.distributed, and knows nothing of ringmain.
"""

import sys

import torch
import torch.distributed as dist

import ringmain
import ringmain.torch
from ringmain import comms

BUDGET_BYTES = 64 * 1024


class Budget:
    """How many bytes a step may move. The same on every rank: whom one rank refuses, the others would wait for."""

    def __init__(self) -> None:
        self.left = BUDGET_BYTES

    def __call__(self, args: comms.PreHookArgs) -> str | None:
        wanted = sum(int(tensor.nbytes) for tensor in args.inputs)
        if wanted > self.left:
            return f"{wanted} bytes, and {self.left} are left in this step"
        self.left -= wanted
        return None


def train(model: torch.nn.Module, steps: int, budget: Budget) -> int:
    """Returns how many gradients were not averaged."""
    skipped = 0
    for _ in range(steps):
        budget.left = BUDGET_BYTES
        model(torch.ones(4, 64)).sum().backward()
        for parameter in model.parameters():
            try:
                dist.all_reduce(parameter.grad)
            except ringmain.torch.CollectiveVetoed:
                skipped += 1
            parameter.grad = None
    return skipped


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    dist.init_process_group("gloo")
    issued: list[int] = []
    with ringmain.Bus("example") as bus, ringmain.torch.attach(bus):
        budget, hooks = Budget(), comms.hooks_of(dist.group.WORLD)
        guard = hooks.register_pre_hook(budget)
        hooks.register_post_hook(lambda args: issued.append(args.op_id) if args.outcome == "issued" else None)
        model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Linear(128, 128))
        skipped = train(model, steps, budget)
        guard.remove()  # it is not called any more
        skipped_later = train(model, 1, budget)
        print(f"rank {dist.get_rank()}: {len(issued)} all_reduce issued, {skipped} refused, {skipped_later} without the guard")
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
