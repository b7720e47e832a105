"""Does Python hear what is published, once, in order, and until it leaves?"""

import threading

import pytest
import ringmain


def test_what_is_published_is_heard_in_order(bus, ticks, keep, long):
    bus.subscribe("test.*", keep)
    for n in range(1000):
        assert ticks.publish(n=n)
    assert bus.flush(long)
    assert keep.numbers == list(range(1000))
    assert {batch.channel for batch in keep.batches} == {"test.tick"}


def test_the_decorator_gives_a_handle_that_removes(bus, ticks, long):
    heard = []

    @bus.on("test.tick")
    def seen(events):
        heard.extend(record.n for record in events)

    assert ticks.publish(n=1) and bus.flush(long)
    assert seen.name.endswith("seen")
    assert seen.remove() == "done"
    assert ticks.publish(n=2).code == "unheard"
    assert heard == [1]
    assert seen.remove() == "was_not_attached"
    assert not seen.attached


def test_a_pattern_hears_channels_that_come_later(bus, keep, long):
    bus.subscribe("late.>", keep)
    assert bus.channel("late.one.two", dtype=[("n", "i8")]).publish(n=7)
    assert bus.flush(long)
    assert keep.numbers == [7]


def test_each_batch_is_of_one_channel(bus, keep, long):
    bus.subscribe(">", keep)
    a, b = (bus.channel(name, dtype=[("n", "i8")]) for name in ("test.a", "test.b"))
    for n in range(100):
        assert a.publish(n=n) and b.publish(n=-n)
    assert bus.flush(long)
    for batch in keep.batches:
        sign = 1 if batch.channel == "test.a" else -1
        assert all(record.n * sign >= 0 for record in batch)
    assert sum(map(len, keep.batches)) == 200


def test_callbacks_run_on_one_thread_that_python_knows(bus, ticks, long):
    threads = set()
    for _ in range(3):
        bus.subscribe("test.tick", lambda events: threads.add(threading.current_thread().name))
    for n in range(100):
        assert ticks.publish(n=n)
    assert bus.flush(long)
    assert threads == {"test-dispatcher"}


def test_remove_waits_for_the_call_that_is_running(bus, ticks, long):
    inside, go, over = threading.Event(), threading.Event(), threading.Event()

    @bus.on("test.tick")
    def slow(events):
        inside.set()
        go.wait(long)
        over.set()

    assert ticks.publish(n=1)
    assert inside.wait(long)
    assert slow.remove(timeout=0.01) == "timeout"
    go.set()
    assert slow.remove() == "done"
    assert over.is_set()


def test_a_coroutine_function_is_refused(bus):
    async def hear(events):
        pass

    with pytest.raises(TypeError, match="async for"):
        bus.subscribe("test.tick", hear)
    with pytest.raises(TypeError, match="cannot be called"):
        bus.subscribe("test.tick", 7)


def test_what_waits_is_bounded_and_its_loss_counted(bus, ticks, long, eventually):
    inside, go = threading.Event(), threading.Event()

    def stop(events):
        inside.set()
        go.wait(long)

    seen = bus.subscribe("test.tick", stop, queue_events=16)
    assert ticks.publish(n=0) and inside.wait(long)
    for n in range(1, 101):
        assert ticks.publish(n=n)
    assert eventually(lambda: seen.stats().offered == 101)
    assert seen.stats().dropped == 101 - 16
    go.set()
    assert bus.flush(long)
    assert seen.stats().delivered == 16


def test_options_that_cannot_hold_are_said(bus):
    with pytest.raises(ValueError, match="drop_oldest"):
        bus.subscribe("test.tick", print, overflow="block")
    with pytest.raises(ValueError, match="queue_events"):
        bus.subscribe("test.tick", print, queue_events=0)
    with pytest.raises(ValueError, match="detach"):
        bus.subscribe("test.tick", print, on_raise="explode")
    with pytest.raises(ValueError, match="empty token"):
        bus.subscribe("test..tick", print)


def test_a_thread_knows_that_it_is_in_a_subscriber_also_after_one_that_raised(bus, ticks, long):
    asked = []

    def ask(_):
        asked.append(ringmain.in_subscriber())

    def broken(event):
        ask(event)
        raise RuntimeError("out of cheese")

    assert not ringmain.in_subscriber()
    for hear in (ask, broken):
        bus.subscribe("test.tick", hear)
        bus.subscribe_inline("test.tick", hear)
    box = bus.mailbox("test.tick")
    for n in (1, 2):
        assert ticks.publish(n=n).code == "accepted"
        assert not ringmain.in_subscriber()
        assert bus.flush(long)
    assert asked.count(True) == len(asked) == 8
    assert len(box.take()) > 0  # a queue that its reader empties is no callback
    assert not ringmain.in_subscriber()
