# How do I publish an event from Python, and hear it?
import ringmain


@ringmain.event("train.loss")
class Loss:
    step: int
    loss: float
    layer: str = ""


with ringmain.Bus() as bus:
    @bus.on(Loss)
    def seen(events):
        for event in events:
            print(event.step, event.loss, event.layer)

    assert bus.publish(Loss(1, 2.5, "head"))  # false: it is lost, and counted
    assert bus.flush(10)
