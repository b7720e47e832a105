"""Do buses live, count and end as they should, whatever their callbacks do?"""

import gc
import logging
import threading
import weakref

import pytest
import ringmain


def test_one_that_raises_is_counted_logged_once_and_harms_nobody(bus, ticks, keep, caplog, long):
    def broken(events):
        raise RuntimeError("out of cheese")

    seen = bus.subscribe("test.tick", broken)
    bus.subscribe("test.tick", keep)
    with caplog.at_level(logging.ERROR, logger="ringmain"):
        for n in range(3):
            assert ticks.publish(n=n) and bus.flush(long)
    assert keep.numbers == [0, 1, 2]
    (said,) = caplog.records
    assert "broken" in said.getMessage() and said.exc_info[0] is RuntimeError
    assert seen.raised == 3 == bus.stats().python.raised
    assert seen.attached


def test_one_that_raises_may_be_detached_by_it(bus, ticks, caplog, long):
    calls = []

    def broken(events):
        calls.append(len(events))
        raise SystemExit("not from here")

    seen = bus.subscribe("test.tick", broken, on_raise="detach")
    with caplog.at_level(logging.ERROR, logger="ringmain"):
        for n in range(3):
            ticks.publish(n=n)
            assert bus.flush(long)
    assert len(calls) == 1 and not seen.attached
    assert "SystemExit" in caplog.text


def test_a_callback_may_remove_itself_and_others(bus, ticks, keep, long):
    answers = []

    def once(events):
        answers.append(handle.remove())
        answers.append(other.remove())

    other = bus.subscribe("test.never", keep)
    handle = bus.subscribe("test.tick", once)
    assert ticks.publish(n=1) and bus.flush(long)
    assert ticks.publish(n=2)
    assert bus.flush(long)
    assert answers == ["deferred", "done"]
    assert handle.remove() == "was_not_attached"


def test_what_a_removed_callback_held_is_let_go(bus, ticks, long, eventually):
    class Held:
        pass

    held = Held()
    ref = weakref.ref(held)
    seen = bus.subscribe("test.tick", lambda events, held=held: None)
    inline = bus.subscribe_inline("test.tick", lambda event, held=held: None)
    del held
    assert ticks.publish(n=1) and bus.flush(long)
    assert seen.remove() == "done" and inline.remove() == "done"
    del seen, inline
    gc.collect()
    assert ref() is None


def test_waiting_inside_a_callback_is_refused(bus, ticks, long):
    answers = []
    bus.subscribe("test.tick", lambda events: answers.append(bus.flush(long)))
    assert ticks.publish(n=1) and bus.flush(long)
    assert answers == [False]


def test_two_buses_are_apart(bus, ticks, keep, tick, long):
    with ringmain.Bus("other") as other:
        heard = []
        other.subscribe("test.tick", lambda events: heard.extend(r.n for r in events))
        bus.subscribe("test.tick", keep)
        assert ticks.publish(n=1)
        assert other.publish(tick(2))
        assert bus.flush(long) and other.flush(long)
        assert (keep.numbers, heard) == ([1], [2])
        # A callback of one publishes on the other, and leaves it.
        away = other.subscribe("test.tick", lambda events: [ticks.publish(n=r.n + 10) for r in events])
        assert other.publish(tick(3)) and other.flush(long) and bus.flush(long)
        assert keep.numbers == [1, 13]
        assert away.remove() == "done"
    assert bus.publish(tick(4)) and bus.flush(long)
    assert keep.numbers == [1, 13, 4]


def test_close_delivers_what_was_accepted(long):
    heard = []
    bus = ringmain.Bus()
    bus.subscribe("test.*", lambda events: heard.extend(r.n for r in events))
    channel = bus.channel("test.close", dtype=[("n", "i8")])
    for n in range(10000):
        assert channel.publish(n=n)
    assert bus.close(long)
    assert heard == list(range(10000))
    assert bus.closed and bus.close()
    assert channel.publish(n=1).code == "closed"
    with pytest.raises(RuntimeError, match="closed"):
        bus.subscribe("test.*", print)
    assert not bus.flush(0)


def test_a_bus_that_is_let_go_ends(long):
    bus = ringmain.Bus("short")
    bus.subscribe("test.*", print)
    ref = weakref.ref(bus)
    del bus
    gc.collect()
    assert ref() is None
    assert "short-dispatcher" not in {thread.name for thread in threading.enumerate()}


def test_the_process_has_one_bus(keep, tick, long):
    bus = ringmain.Bus.process()
    assert bus is ringmain.Bus.process()
    bus.subscribe("test.tick", keep)
    assert bus.publish(tick(1)) and bus.flush(long)
    bus.close()
    again = ringmain.Bus.process()
    assert not again.closed
    assert again.publish(tick(2)).code == "unheard", "close ended what Python had subscribed"
    again.subscribe("test.tick", keep)
    assert again.publish(tick(3)) and again.flush(long)
    assert keep.numbers == [1, 3]


def test_figures_balance(bus, ticks, keep, long):
    bus.subscribe("test.tick", keep, name="keeper")
    with bus.subscribe_inline("test.tick", lambda event: event.n % 2 == 0):
        for n in range(100):
            ticks.publish(n=n)
    assert bus.flush(long)
    figures = bus.stats()
    channel = figures.channels["test.tick"]
    assert (channel.offered, channel.accepted, channel.vetoed, channel.delivered) == (100, 50, 50, 50)
    (row,) = [row for row in figures.subscriptions if row.name == "keeper"]
    assert (row.offered, row.delivered, row.pending, row.dropped) == (50, 50, 0, 0)
    assert figures.python.events == 50


def test_steps_are_said_with_their_ends(bus, long):
    edges = []
    bus.subscribe("train.step", lambda events: edges.extend((r.step, r.phase, r.micro_batch, r.edge) for r in events))
    with bus.step(7):
        with bus.step(phase="forward", micro_batch=1):
            pass
    with pytest.raises(KeyError), bus.step(8, phase="backward"):
        raise KeyError
    assert bus.flush(long)
    assert edges == [(7, "", 0, "begin"), (7, "forward", 0, "begin"), (7, "forward", 1, "begin"), (7, "forward", 1, "end"),
                     (7, "forward", 0, "end"), (7, "", 0, "end"), (8, "", 0, "begin"), (8, "backward", 0, "begin"),
                     (8, "backward", 0, "end"), (8, "", 0, "end")]


def test_many_threads_publish_subscribe_and_leave(bus, ticks, long):
    heard = []
    bus.subscribe("test.tick", lambda events: heard.extend(events.array["n"].tolist()))

    def work(base):
        for n in range(200):
            with bus.subscribe("test.tick", lambda events: None), bus.subscribe_inline("test.tick", lambda event: True):
                ticks.publish(n=base + n)

    threads = [threading.Thread(target=work, args=(1000 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bus.flush(long)
    assert sorted(heard) == sorted(1000 * i + n for i in range(4) for n in range(200))
    for i in range(4):
        own = [n for n in heard if n // 1000 == i]
        assert own == sorted(own)
