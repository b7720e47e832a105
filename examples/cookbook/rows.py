# How do I publish a whole array of events at once?
import numpy as np

import ringmain

with ringmain.Bus() as bus:
    loss = bus.channel("train.loss", dtype=np.dtype([("step", "u4"), ("loss", "f8")]))
    with bus.mailbox("train.loss") as mailbox:
        rows = np.zeros(1000, loss.dtype)
        rows["step"] = np.arange(1000)
        told = loss.publish_all(rows)
        assert bus.flush(10)
        heard = sum(len(batch) for batch in mailbox)
    print(told.accepted, "accepted,", heard, "read")
    assert told.accepted == heard == 1000
