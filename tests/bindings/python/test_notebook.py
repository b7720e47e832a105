"""Can a cell be run again, can what is heard be seen, and does a wrong argument get a sentence of ours?"""

import threading
import time

import numpy as np
import pytest
import ringmain

CELL = """
@bus.on("test.*")
def seen(events):
    heard.extend((mark, record.n) for record in events)
"""


def run(cell, bus, heard, mark):
    names = {"bus": bus, "heard": heard, "mark": mark}
    exec(compile(cell, "<ipython-input-1-abc>", "exec"), names)
    return names["seen"]


def test_a_cell_that_is_run_again_replaces_what_it_subscribed(bus, ticks, long):
    heard = []
    first = run(CELL, bus, heard, "first")
    second = run(CELL, bus, heard, "second")
    assert not first.attached and bus.subscriptions() == [second]
    assert ticks.publish(n=1) and bus.flush(long)
    assert heard == [("second", 1)]


def test_a_name_that_is_given_stands_for_one_subscription(bus, ticks, long):
    heard = []
    for n in range(3):
        bus.subscribe("test.*", lambda events, n=n: heard.append(n), name="mine")
        bus.subscribe("test.other", lambda events: None, name="mine")
        bus.subscribe_inline(ticks, lambda event, n=n: heard.append(10 + n), name="mine")
    assert len(bus.subscriptions()) == 3
    assert ticks.publish(n=1) and bus.flush(long)
    assert sorted(heard) == [2, 12]


def test_functions_of_a_script_are_each_heard(bus, ticks, long):
    heard = []
    for n in range(3):
        def seen(events, n=n):
            heard.append(n)
        bus.subscribe("test.*", seen)
    assert ticks.publish(n=1) and bus.flush(long)
    assert sorted(heard) == [0, 1, 2]


def test_subscriptions_are_those_that_are_attached(bus, ticks, keep, long):
    one, two = bus.subscribe("test.*", keep), bus.subscribe_inline(ticks, lambda event: None)
    assert bus.subscriptions() == [one, two]
    assert [repr(found) for found in bus.subscriptions()] == [repr(one), repr(two)]
    bus.subscriptions()[0].remove()
    assert bus.subscriptions() == [two] and "ended" in repr(one)
    bus.close()
    assert bus.subscriptions() == []


def test_a_batch_gives_slices(bus, ticks, long):
    with bus.mailbox("test.*") as box:
        for n in range(10):
            assert ticks.publish(n=n)
        assert bus.flush(long)
        (batch,) = list(box)
    assert [record.n for record in batch[2:5]] == [2, 3, 4]
    assert [record.n for record in batch[::-3]] == [9, 6, 3, 0] and batch[20:] == []
    assert batch[-1].n == 9 and [record.n for record in batch[:]] == list(range(10))


def test_what_comes_while_it_lingers_is_heard_together_and_flush_does_not_wait(ticks, long):
    with ringmain.Bus("lingering", linger_ms=1e6) as bus:
        said, first, batches = bus.channel("test.linger", dtype=[("n", "i8")]), threading.Event(), []

        def hear(events):
            batches.append(events.array["n"].tolist())
            first.set()

        bus.subscribe("test.linger", hear)
        assert said.publish(n=0) and first.wait(long), "the first is heard at once"
        count, waits = 1, False
        while not waits and count < 100:  # until the worker that had the last one has begun to rest
            assert said.publish(n=count)
            count += 1
            time.sleep(0.1)  # time enough for one that does not linger; one that does has a quarter of an hour
            waits = sum(map(len, batches)) < count
        heard = len(batches)
        for n in range(count, count + 50):
            assert said.publish(n=n)
        time.sleep(0.01)
        assert waits and len(batches) == heard, "what comes meanwhile waits"
        assert bus.flush(long) and sum(batches, []) == list(range(count + 50))
        assert said.publish(n=count + 50) and bus.close(long)
        assert sum(batches, []) == list(range(count + 51))


def test_many_events_end_a_rest(long, eventually):
    with ringmain.Bus("many", linger_ms=1e6) as bus:
        said, heard = bus.channel("test.many", dtype=[("n", "i8")]), []
        bus.subscribe("test.many", lambda events: heard.append(len(events)))
        for count in (1, 3000, 3000):
            assert all([said.publish(n=n) for n in range(count)])
        assert eventually(lambda: sum(heard) >= 4000), "without a flush"
        assert bus.flush(long) and sum(heard) == 6001


def test_the_linger_is_an_option(bus):
    assert bus.linger_ms == 250.0
    bus.linger_ms = 0
    assert bus.linger_ms == 0.0


def wrong_calls(bus, channel, subscription, box, batch, follow):
    record = batch[0]
    return [
        lambda: ringmain.Bus(7), lambda: ringmain.Bus(workers=-1), lambda: ringmain.Bus(workers="two"), lambda: ringmain.Bus(linger_ms="x"),
        lambda: bus.channel(7), lambda: bus.channel(None), lambda: bus.publish(), lambda: bus.publish(7), lambda: channel.publish(1),
        lambda: channel.publish(n="x"), lambda: channel.publish(m=1), lambda: channel.publish_all(7), lambda: channel.publish_all("x"),
        lambda: bus.subscribe(7, print), lambda: bus.subscribe("a.*", 7), lambda: bus.subscribe("a..b", print),
        lambda: bus.subscribe("a", print, name=7), lambda: bus.subscribe("a", print, queue_events=0),
        lambda: bus.subscribe("a", print, queue_events="x"), lambda: bus.subscribe("a", print, overflow="block"),
        lambda: bus.subscribe("a", print, overflow=7), lambda: bus.subscribe("a", print, priority="x"),
        lambda: bus.subscribe("a", print, priority=2**40), lambda: bus.subscribe("a", print, on_raise="x"),
        lambda: bus.subscribe_inline(channel, 7), lambda: bus.subscribe_inline(channel, print, on_raise="x"),
        lambda: bus.subscribe_inline(channel, print, on_raise=7), lambda: bus.subscribe_inline(7, print),
        lambda: bus.mailbox(7), lambda: bus.mailbox("a", queue_events=-1), lambda: bus.mailbox("a", name=7),
        lambda: bus.step("x"), lambda: bus.step(phase=7), lambda: bus.flush("soon"), lambda: bus.flush(float("nan")),
        lambda: bus.close("soon"), lambda: subscription.remove("soon"), lambda: box.take("x"), lambda: box.take(0), lambda: box.wait("x"),
        lambda: batch["n"], lambda: batch[1.5], lambda: record[7], lambda: follow.of(3), lambda: follow.at(3), lambda: follow.at(batch),
        lambda: ringmain.name(7), lambda: ringmain.name_text("x"), lambda: ringmain.name_text(-1), lambda: ringmain.Text("x"),
        lambda: ringmain.Text(7), lambda: ringmain.EventType.of(7, np.dtype([("n", "i8")])), lambda: ringmain.EventType.of("a", 7),
        lambda: ringmain.event(7)(type("Some", (), {"__annotations__": {"n": int}})),
    ]


def test_every_wrong_argument_gets_a_sentence_of_ours(bus, ticks, keep, long):
    subscription, follow = bus.subscribe("test.*", keep), bus.follow_steps()
    box = bus.mailbox("test.*")
    assert ticks.publish(n=1) and bus.flush(long)
    calls = wrong_calls(bus, ticks, subscription, box, keep.batches[0], follow)
    found = []
    for number, call in enumerate(calls):
        with pytest.raises((TypeError, ValueError, OverflowError)) as said:
            call()
        text = str(said.value)
        if any(word in text for word in ("incompatible function arguments", "nanobind", "\n", "_native")):
            found.append((number, text))
    assert found == [] and not bus.closed
