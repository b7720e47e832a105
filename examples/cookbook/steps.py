# How do I say where the training loop is, and find the step of an event?
import ringmain


@ringmain.event("train.loss")
class Loss:
    loss: float


with ringmain.Bus() as bus:
    follow = bus.follow_steps()  # before the steps begin
    where = []

    @bus.on(Loss)
    def seen(events):
        where.extend(follow.at(event) for event in events)

    with bus.step(7, phase="forward"):
        bus.publish(Loss(2.5))
    assert bus.flush(10)
    print(where)
    assert len(where) == 1
