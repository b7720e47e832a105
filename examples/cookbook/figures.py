# Was anything lost? How do I see that from Python?
import ringmain

with ringmain.Bus() as bus:
    subscription = bus.subscribe("train.step", lambda events: None)
    for step in range(100):
        with bus.step(step):
            pass
    assert bus.flush(10)
    figures = bus.stats().channels["train.step"]
    print(figures.offered, "offered,", figures.accepted, "accepted,", figures.full, "found no room")
    assert figures.offered == figures.accepted
    assert subscription.stats().dropped == 0
