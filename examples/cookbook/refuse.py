# How do I refuse an event from Python, and learn that mine was refused?
import ringmain


@ringmain.event("train.loss")
class Loss:
    loss: float


with ringmain.Bus() as bus:
    def judge(event):  # in the publishing thread: None allows, a text refuses
        return "not finite" if event.loss != event.loss else None

    bus.subscribe_inline(Loss, judge)
    told = bus.publish(Loss(float("nan")))
    print(told.code, told.why)
    assert told.code == "vetoed" and told.why == "not finite"
