"""Do the first forms, bus.publish(event), by name, and bus.step, publish the same as a channel does?"""

import gc
import threading
from dataclasses import dataclass
from typing import ClassVar

import pytest
import ringmain


@ringmain.event("form.loss")
class Loss:
    step: int
    loss: float = 0.5
    layer: str = "head"


def records(keep):
    return [record._asdict() for batch in keep.batches for record in batch]


def test_an_event_its_name_and_its_type_say_the_same(bus, keep, long):
    bus.subscribe("form.*", keep)
    bus.channel(Loss)
    for say in (lambda: bus.publish(Loss(1)), lambda: bus.publish("form.loss", step=1, loss=0.5, layer="head"),
                lambda: bus.publish(bus.channel(Loss).type, step=1, loss=0.5, layer="head")):
        assert say().code == "accepted"
    assert bus.flush(long)
    assert records(keep) == [{"step": 1, "loss": 0.5, "layer": "head"}] * 3


def test_what_is_no_field_of_an_event_is_left_out_and_slots_are_read(bus, keep, long):
    @ringmain.event("form.slots")
    @dataclass(slots=True)
    class Slots:
        n: int
        shown: ClassVar[int] = 3

    bus.subscribe("form.slots", keep)
    assert bus.publish(Slots(7)) and bus.flush(long)
    assert records(keep) == [{"n": 7}]


@pytest.mark.parametrize(("arguments", "fields", "error", "words"), [
    ((), {}, TypeError, "takes an event"), ((1, 2), {}, TypeError, "takes an event"), (("form.loss", 1), {}, TypeError, "takes an event"),
    ((Loss,), {}, TypeError, "an event of it"), ((7,), {}, TypeError, "is no event"), ((None,), {}, TypeError, "is no event"),
    ((Loss(1),), {"step": 2}, TypeError, "change 'step' itself"), ((Loss("one"),), {}, TypeError, "an integer"),
    (("form.nobody",), {}, KeyError, "nobody has said"), (("form..x",), {}, ValueError, "empty token"),
    (("train.step",), {"stop": 1}, TypeError, "has no field 'stop'")])
def test_what_cannot_be_said_is_refused_in_one_sentence(bus, arguments, fields, error, words):
    with pytest.raises(error, match=words) as said:
        bus.publish(*arguments, **fields)
    assert "\n" not in str(said.value) and "nanobind" not in str(said.value)


def test_a_subclass_may_have_a_publish_and_a_step_of_its_own():
    class Own(ringmain.Bus):
        def publish(self, event, /, **fields):
            return "own", super().publish(event, **fields).code

        def step(self, number=None, **more):
            return super().step(number + 1, **more)

    with Own() as bus, bus.mailbox("train.step") as box:
        assert bus.publish(Loss(1)) == ("own", "unheard")
        with bus.step(1):
            pass
        assert bus.flush(10)
        assert [record.step for batch in box for record in batch] == [2, 2]


def test_an_event_that_says_another_while_it_is_read_is_said_whole(bus, keep, long):
    class Sly:
        def __index__(self):
            for n in range(100):
                bus.publish(ringmain.EventType.of(f"form.sly{n}", Loss), step=n)
            return 5

    bus.subscribe(Loss, keep)
    bus.channel(Loss)
    assert bus.publish(Loss(Sly())) and bus.publish("form.loss", step=Sly()) and bus.flush(long)
    assert [record.step for batch in keep.batches for record in batch] == [5, 5]


def edges(bus, long):
    heard = []
    bus.subscribe("train.step", lambda events: heard.extend((r.step, r.phase, r.micro_batch, r.edge) for r in events))
    return heard


def test_a_step_decorates_and_every_call_is_one(bus, long):
    heard = edges(bus, long)

    @bus.step(phase="forward")
    def forward(x):
        """Doubles."""
        return 2 * x if x > 1 else forward(x + 1)

    with bus.step(3):
        assert forward(1) == 4 and forward.__doc__ == "Doubles."
    assert bus.flush(long)
    inside = [edge for _, phase, _, edge in heard if phase]
    assert inside == ["begin", "begin", "end", "end"] and {step for step, *_ in heard} == {3}


@pytest.mark.parametrize(("arguments", "named", "words"), [
    ((1.5,), {}, "number takes a whole number"), ((-1,), {}, "number takes a whole number"), ((1, 2), {}, "by their names"),
    ((1,), {"number": 2}, "once each"), ((), {"phase": 7}, "phase takes a str"), ((), {"micro_batch": 2**32}, "fits its bytes"),
    ((), {"fase": "x"}, "not 'fase'")])
def test_a_step_that_cannot_be_is_refused_and_says_nothing(bus, long, arguments, named, words):
    heard = edges(bus, long)
    with pytest.raises((TypeError, OverflowError), match=words):
        bus.step(*arguments, **named)
    assert bus.flush(long) and heard == []


def test_each_thread_has_steps_of_its_own_and_ends_them_itself(bus, long):
    heard = edges(bus, long)
    scope = bus.step(1)
    with pytest.raises(RuntimeError, match="open already"), scope:
        scope.__enter__()
    caught = []

    def other():
        with bus.step(2):
            try:
                scope.__exit__(None, None, None)
            except RuntimeError as error:
                caught.append(str(error))

    with bus.step(1):
        scope.__enter__()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert "in the thread and process that began it" in caught[0]
    assert bus.flush(long)
    assert [(step, edge) for step, _, _, edge in heard if step == 2] == [(2, "begin"), (2, "end")]


def test_a_scope_that_is_let_go_ends(bus, long):
    heard = edges(bus, long)
    scope = bus.step(1)
    scope.__enter__()
    del scope
    assert bus.flush(long)
    assert [edge for *_, edge in heard] == ["begin", "end"]


def changed(fields):
    """The class that a cell of a notebook makes, each time it is run."""
    made = type("Cell", (), {"__annotations__": fields, "__module__": __name__, "__qualname__": "Cell"})
    return ringmain.event("form.cell")(made)


def test_a_class_whose_fields_were_changed_is_a_new_version_that_its_name_hears(bus, keep, long):
    bus.subscribe("form.cell", keep)
    first, same = changed({"n": int}), changed({"n": int})
    assert bus.publish(first(1)) and bus.publish(same(2)) and bus.publish("form.cell", n=3)
    second = changed({"n": int, "x": float})
    assert bus.publish(second(4, 0.5)) and bus.publish("form.cell", n=5, x=1.5) and bus.publish(first(6))
    assert bus.flush(long)
    heard = {}
    for batch in keep.batches:
        heard.setdefault(batch.channel, []).extend(record.n for record in batch)
    assert heard == {"form.cell": [1, 2, 3, 6], "form.cell@2": [4, 5]}
    assert bus.publish(changed({"n": int})(7)) and bus.publish("form.cell", n=8) and bus.flush(long)
    assert [record.n for record in keep.batches[-1]][-1] == 8 and keep.batches[-1].channel == "form.cell", "back to the first"


def test_another_class_of_the_same_name_is_a_conflict_still(bus):
    changed({"n": int})
    bus.channel("form.cell", dtype=[("n", "i8")])

    @ringmain.event("form.cell")
    class Another:
        m: float

    with pytest.raises(ValueError, match="give one of the two another name"):
        bus.publish(Another(1.0))


def test_a_class_that_becomes_another_event_is_said_as_what_it_is(bus, keep, long):
    class Changing:
        n: int

    bus.subscribe("form.*", keep)
    first = ringmain.event("form.first")(Changing)
    assert bus.publish(first(1)) and bus.publish(first(2))
    second = ringmain.event("form.second")(Changing)
    assert second is first and bus.publish(second(3)) and bus.publish(Loss(4)) and bus.publish(second(5)) and bus.flush(long)
    heard = {}
    for batch in keep.batches:
        heard.setdefault(batch.channel, []).extend(next(iter(record._asdict().values())) for record in batch)
    assert heard == {"form.first": [1, 2], "form.second": [3, 5], "form.loss": [4]}


def test_the_name_of_a_declared_class_is_known_before_anything_was_said(bus, keep, long):
    @ringmain.event("test.declared")
    class Declared:
        n: int

    bus.subscribe("test.*", keep)
    assert bus.publish("test.declared", n=3) and bus.flush(long)
    assert keep.batches[0][0].n == 3 and bus.channel("test.declared").name == "test.declared"


def test_many_classes_in_turn_are_each_said_on_their_own_channel_however_they_come_and_go(bus, keep, long):
    def made(number):
        return ringmain.event(f"turn.event{number}")(type(f"Turn{number}", (), {"__annotations__": {"n": int}, "__init__": filled}))

    def filled(self, n):
        self.n = n

    bus.subscribe("turn.*", keep)
    said = []
    for round_ in range(3):
        kinds = [made(number) for number in range(20)]  # more than are kept, and those of the round before are gone
        for number in [*range(20), *range(0, 20, 3), *range(20)]:
            assert bus.publish(kinds[number](round_)), number
            said.append((f"turn.event{number}", round_))
        with pytest.raises(TypeError):
            bus.publish(object())
        del kinds
        gc.collect()
    assert bus.flush(long)
    assert sorted((batch.channel, record.n) for batch in keep.batches for record in batch) == sorted(said)
