# How do I get events as NumPy arrays, without a loop?
import numpy as np

import ringmain

with ringmain.Bus() as bus:
    loss = bus.channel("train.loss", dtype=np.dtype([("step", "u4"), ("loss", "f8")]))
    kept = []

    @bus.on("train.loss")
    def keep(events):
        kept.append(events.array["loss"])  # the engine's own memory: nothing is copied

    for step in range(1, 101):
        loss.publish(step=step, loss=1.0 / step)
    assert bus.flush(10)
    losses = np.concatenate(kept)
    print(len(losses), "losses, the last", losses[-1])
    assert len(losses) == 100
