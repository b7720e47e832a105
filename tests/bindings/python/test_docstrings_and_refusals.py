"""Does everything public have a docstring, and refuse a wrong call in a sentence of ours? Tried on each public name."""

import inspect
import math

import numpy as np
import pytest
import ringmain

NOT_OURS = ("incompatible function arguments", "nanobind", "_native", "\n", " object at 0x")
WRONG = (object(), b"bytes", [], {}, "no such", -1, 10**30, -(10**30), 1.5, math.nan, None, print, ringmain, type)


@pytest.fixture
def things(bus, ticks, tick, keep, long, tmp_path, monkeypatch):
    """One of each public class, by its name."""
    hear, box, follow = bus.subscribe("test.*", keep), bus.mailbox("test.*"), bus.follow_steps()
    mine = bus.mailbox(ticks)
    told, rows = ticks.publish(n=1), ticks.publish_all(np.zeros(2, ticks.dtype))
    scope = bus.step(3, phase="forward")
    with scope:
        bus.publish(tick(7))
        assert bus.flush(long)
    batch = keep.batches[0]
    stats = bus.stats()
    monkeypatch.setenv("RINGMAIN_FLIGHT_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)  # a wrong word may be a right name of a folder
    recording = bus.record("test.>")
    place = next(follow.at(record) for found in keep.batches for record in found if record.channel == ticks.name and record.n == 7)
    yield {"Batch": batch, "BatchResult": rows, "Bus": bus, "Channel": ticks, "ChannelStats": stats.channels[ticks.name],
           "Door": ringmain.open_door(tmp_path), "EventType": ticks.type, "Mailbox": box, "PublishResult": told, "PythonStats": stats.python,
           "Record": batch[0], "Recording": recording,
           "Stamp": batch[0].stamp, "Stats": stats, "StepFollow": follow, "StepPlace": place, "Subscription": hear,
           "SubscriberStats": hear.stats(), "Text": ringmain.Text(8), "Unit": ringmain.Unit.BYTES,
           # What one gets without a name for its class.
           "a step": scope, "a step to come": bus.step(phase="x"), "records": iter(batch), "a mailbox of one channel": mine,
           "an event": tick(1), "a record that is being said": said_inline(bus, ticks), "channel.publish": ticks.publish,
           "bus.publish": bus.publish, "bus.step": bus.step, "bus.process": ringmain.Bus.process()}


def said_inline(bus, channel):
    kept = []
    with bus.subscribe_inline(channel, kept.append):
        channel.publish(n=5)
    return kept[0]


def public_classes():
    return {name for name in ringmain.__all__ if inspect.isclass(getattr(ringmain, name))}


def test_each_public_class_says_what_it_is(things):
    assert public_classes() - set(things) == set(), "make one of each in things()"
    found = {}
    for name, thing in things.items():
        if name in public_classes():
            assert isinstance(thing, getattr(ringmain, name))
        if inspect.isbuiltin(thing):  # Python's own words
            continue
        text = repr(thing)
        if any(word in text for word in NOT_OURS) or len(text) > (4000 if name == "Stats" else 400):
            found[name] = text
    assert found == {}


def test_what_is_shown_is_what_one_asks_for(bus, things, tick):
    assert repr(things["Mailbox"]) == "<mailbox of 'test.*'>" and repr(things["StepFollow"]) == "<follows the steps of bus 'test'>"
    assert repr(things["a mailbox of one channel"]) == "<mailbox of test.tick>"
    assert repr(ringmain.Text(8)) == "Text(8)" and repr(things["Bus"]) == "<bus 'test'>"
    assert repr(bus.step(phase="x")) == "<step, phase 'x'>" and repr(things["a step"]) == "<step 3, phase 'forward'>"
    with (scope := bus.step(4, micro_batch=2)):
        assert repr(scope) == "<step 4, micro-batch 2, open>"
    bus.close()
    things["StepFollow"].close()
    assert repr(bus) == "<bus 'test', closed>" and repr(things["Mailbox"]) == "<mailbox of 'test.*', closed>"
    assert repr(things["StepFollow"]) == "<follows the steps of bus 'test', closed>"


def fault_of(call, *arguments, **named):
    """What is wrong with the words of the refusal; None where there is none, or it is ours."""
    try:
        call(*arguments, **named)
    except Exception as refusal:
        text = str(refusal)
        return text if not text or any(word in text for word in NOT_OURS[:-1]) else None
    return None


def wrong_calls(call):
    """(arguments, named) for each parameter in turn, and far too many and few of them."""
    yield (), {"no_such_argument": 1}
    yield (1, 2, 3, 4, 5, 6, 7, 8, 9), {}
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        parameters = None
    if parameters is None:  # a function of C: one, and two at a time
        yield from (((value,), {}) for value in WRONG)
        yield from (((value, value), {}) for value in WRONG)
        return
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if needed:
        yield (), {}
    for value in WRONG:
        waits = [p for p in parameters if p.name == "timeout"]
        if not waits or not (value is None or value == 10**30):  # these wait, as they should
            yield from (((value,) * n, {}) for n in range(1, min(len(parameters), 3) + 1))
            fits = ["test.tick", print][:len(needed)]
            yield from ((tuple(fits), {p.name: value}) for p in parameters if p.default is not p.empty)


ENDS = ("close", "stop", "remove")  # said last: what comes after would hear of a thing that has ended
SPECIAL = ("__getitem__", "__call__", "__contains__", "__setitem__", "__delitem__", "__buffer__", "__lt__", "__add__", "__exit__", "__getattr__")


def calls_of(name, thing):
    if inspect.isbuiltin(thing) or inspect.isfunction(thing) or inspect.isclass(thing) or not hasattr(type(thing), "__dict__"):
        yield name, thing
        return
    ours = {m for of in type(thing).__mro__ if of.__module__.startswith("ringmain") for m in vars(of)} | set(getattr(thing, "__dict__", ()))
    members = [m for m in ours if not m.startswith("_") or m in SPECIAL or m == "_asdict"]
    for member in sorted(members, key=lambda m: m in ENDS):
        found = getattr(thing, member, None)
        if callable(found) and not inspect.isclass(found):
            yield f"{name}.{member}", found


def test_each_wrong_argument_of_all_that_is_public_gets_words_of_ours(things, monkeypatch):
    monkeypatch.setattr(ringmain.Bus, "_of_process", None)
    targets = dict(things)
    targets.update({name: getattr(ringmain, name) for name in ringmain.__all__ if name != "events"})
    found, tried = {}, 0
    for name, thing in sorted(targets.items(), key=lambda item: item[0] in ("Bus", "bus.process")):
        for called, call in [*calls_of(name, thing), *(calls_of(name, things[name]) if name in public_classes() else ())]:
            for arguments, named in wrong_calls(call):
                if called.endswith(".__exit__") or (called.endswith((".wait", ".flush")) and arguments == (None,)):
                    continue
                tried += 1
                text = fault_of(call, *arguments, **named)
                if text is not None:
                    found.setdefault(called, (arguments, named, text))
    assert tried > 1000
    assert not found, "\n".join(f"{called}(*{with_[0]!r:.60}, **{with_[1]!r:.60}): {with_[2]!r}" for called, with_ in found.items())


def test_each_setting_refuses_what_it_is_not(things):
    found = {}
    for name, thing in things.items():
        for member in dir(type(thing)):
            if not member.startswith("_") and not callable(getattr(thing, member, None)) and name not in ("an event", "Unit"):
                for value in WRONG[:5]:
                    text = fault_of(setattr, thing, member, value)
                    if text is not None:
                        found.setdefault(f"{name}.{member}", text)
    assert found == {}


@pytest.mark.parametrize(("pattern", "why"), [
    ("train*", "a \\* beside other characters"), ("train.**", "a \\* beside other characters"),
    (">.loss", "a > that is not its last word"), ("train.>>", "a > that is not its last word")])
def test_a_pattern_that_matches_nothing_ever_is_refused(bus, pattern, why):
    for hear in (lambda: bus.subscribe(pattern, print), lambda: bus.mailbox(pattern)):
        with pytest.raises(ValueError, match=why):
            hear()
    for fine in ("train.*", "*.loss", "train.>", ">", "*"):
        bus.mailbox(fine).close()


def test_a_class_below_event_without_a_name_is_told_where_the_name_goes():
    with pytest.raises(TypeError, match=r"put @ringmain\.event\('its\.name'\) on Loss"):
        @ringmain.event
        class Loss:
            n: int


def test_a_number_that_does_not_fit_is_told_what_does(bus):
    narrow = bus.channel("test.narrow", dtype=[("a", "i1"), ("b", "u8"), ("c", "u2"), ("d", "i8")])
    for field, value, fits in (("a", 128, "from -128 to 127"), ("b", -1, f"from 0 to {2**64 - 1}"), ("c", 2**16, "from 0 to 65535"),
                               ("d", 2**63, f"from {-2**63} to {2**63 - 1}")):
        with pytest.raises(OverflowError, match=fits):
            narrow.publish(**{field: value})


def test_a_linger_that_is_no_number_is_told_what_it_wants(bus):
    with pytest.raises(TypeError, match="linger_ms is 'x'; give milliseconds"):
        ringmain.Bus(linger_ms="x")
    with pytest.raises(ValueError, match="linger_ms is -1; give milliseconds"):
        bus.linger_ms = -1
