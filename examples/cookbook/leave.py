# How do I stop hearing in Python?
import ringmain

with ringmain.Bus() as bus:
    heard = []
    subscription = bus.subscribe("train.step", heard.append)
    with bus.step(1):
        pass
    assert bus.flush(10)
    subscription.remove()  # no call is running now, and none will start
    seen = len(heard)
    with bus.step(2):
        pass
    assert bus.flush(10)
    assert seen > 0 and len(heard) == seen
    print(subscription)
