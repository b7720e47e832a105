#!/usr/bin/env python3
"""A training loop that publishes what it does, and three listeners: one for batches, one that may refuse, one in asyncio.

usage: training.py [STEPS]
"""

import asyncio
import sys
import threading

import numpy as np

import ringmain


@ringmain.event("example.loss")
class Loss:
    step: int
    loss: float
    layer: str = ""


def train(bus: ringmain.Bus, steps: int) -> int:
    """Returns how many losses were refused."""
    refused = 0
    for step in range(steps):
        with bus.step(step, phase="forward"):
            told = bus.publish(Loss(step, 2.5 / (step + 1), "head"))
            refused += told.code == "vetoed"
    return refused


async def count_steps(mailbox: ringmain.Mailbox, steps: int) -> int:
    """Steps that have ended, as an event loop sees them."""
    ended = 0
    async for events in mailbox:
        phases = [event.phase for event in events if event.edge == "end"]
        ended += phases.count("")
        if ended == steps:
            break
    return ended


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    losses: list[np.ndarray] = []
    with ringmain.Bus("example") as bus:

        @bus.on("example.*")
        def keep(events: ringmain.Batch) -> None:
            losses.append(events.array["loss"])  # the engine's memory, kept: nothing is copied

        guard = bus.subscribe_inline(Loss, lambda event: "too small to tell" if event.loss < 0.1 else None)
        with bus.mailbox("train.step") as mailbox:
            trainer = threading.Thread(target=lambda: refused.append(train(bus, steps)))
            refused: list[int] = []
            trainer.start()
            ended = asyncio.run(asyncio.wait_for(count_steps(mailbox, steps), 60))
            trainer.join()
        guard.remove()
        if not bus.flush(60):
            sys.exit("not all was heard within a minute")
        heard = np.concatenate(losses)
        print(f"{ended} steps, {len(heard)} losses heard, the last {heard[-1]:.2f}, {refused[0]} refused")
        figures = bus.stats()
        print(f"{figures.python.batches} batches, and the GIL taken {figures.python.gil_taken} times for them")


if __name__ == "__main__":
    main()
