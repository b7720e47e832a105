"""Do inline subscribers see events first, in the publishing thread, and stop those they veto?"""

import logging
import threading

import pytest


def test_a_veto_stops_the_event_and_says_why(bus, ticks, keep, long):
    bus.subscribe("test.tick", keep)
    with bus.subscribe_inline("test.tick", lambda event: None if event.n < 2 else f"{event.n} is too many"):
        assert ticks.publish(n=1).code == "accepted"
        told = ticks.publish(n=2)
        assert (bool(told), told.code, told.why) == (False, "vetoed", "2 is too many")
    assert ticks.publish(n=3).code == "accepted"
    assert bus.flush(long)
    assert keep.numbers == [1, 3]
    assert bus.stats().channels["test.tick"].vetoed == 1


def test_false_is_a_veto_with_the_subscribers_name(bus, ticks):
    bus.subscribe_inline("test.tick", lambda event: False, name="budget")
    assert ticks.publish(n=1).why == "vetoed by budget"


def test_it_runs_in_the_publishing_thread_before_publish_returns(bus, ticks, long):
    seen = []
    bus.subscribe_inline("test.tick", lambda event: seen.append((event.n, threading.get_ident())))
    thread = threading.Thread(target=ticks.publish, kwargs={"n": 5})
    thread.start()
    ident = thread.ident
    thread.join()
    assert seen == [(5, ident)]


def test_the_highest_priority_goes_first_and_the_first_veto_ends_it(bus, ticks):
    asked = []

    def judge(name, answer):
        def ask(event):
            asked.append(name)
            return answer

        return ask

    bus.subscribe_inline("test.tick", judge("low", "never heard"), priority=-1)
    bus.subscribe_inline("test.tick", judge("middle", "no"))
    bus.subscribe_inline("test.tick", judge("high", True), priority=1)
    assert ticks.publish(n=1).why == "no"
    assert asked == ["high", "middle"]


@pytest.mark.parametrize(("on_raise", "codes"), [("allow", ["accepted", "accepted"]), ("veto", ["vetoed", "vetoed"]),
                                                 ("detach", ["accepted", "accepted"])])
def test_one_that_raises_does_what_was_asked_and_is_logged_once(bus, ticks, caplog, on_raise, codes):
    def broken(event):
        raise RuntimeError("out of cheese")

    seen = bus.subscribe_inline("test.tick", broken, on_raise=on_raise)
    with caplog.at_level(logging.ERROR, logger="ringmain"):
        assert [ticks.publish(n=n).code for n in range(2)] == codes
    (said,) = caplog.records
    assert "broken" in said.getMessage() and "RuntimeError" in said.getMessage()
    assert seen.raised == (1 if on_raise == "detach" else 2)


def test_an_answer_that_is_none_of_those_is_an_error_of_the_subscriber(bus, ticks, caplog):
    seen = bus.subscribe_inline("test.tick", lambda event: 7, on_raise="veto")
    with caplog.at_level(logging.ERROR, logger="ringmain"):
        assert ticks.publish(n=1).code == "vetoed"
    assert "False or a str (veto)" in caplog.text
    assert seen.raised == 1


def test_its_record_is_its_own_and_may_be_kept(bus, ticks):
    kept = []
    bus.subscribe_inline("test.tick", kept.append)
    for n in range(3):
        ticks.publish(n=n, word=str(n))
    assert [(record.n, record.word, record.stamp, record.channel) for record in kept] == [
        (n, str(n), None, "test.tick") for n in range(3)]


def test_it_may_remove_itself(bus, ticks):
    seen = []

    def once(event):
        seen.append(event.n)
        assert handle.remove() == "deferred"

    handle = bus.subscribe_inline("test.tick", once)
    for n in range(3):
        ticks.publish(n=n)
    assert seen == [0]


def test_remove_waits_for_a_call_in_another_thread(bus, ticks, long):
    inside, go = threading.Event(), threading.Event()

    def slow(event):
        inside.set()
        go.wait(long)

    handle = bus.subscribe_inline("test.tick", slow)
    thread = threading.Thread(target=ticks.publish, kwargs={"n": 1})
    thread.start()
    assert inside.wait(long)
    assert handle.remove(timeout=0.01) == "timeout"
    go.set()
    assert handle.remove() in ("done", "was_not_attached")
    thread.join()


def test_what_it_publishes_itself_comes_first(bus, ticks, keep, long):
    bus.subscribe("test.tick", keep)

    def echo(event):
        if event.n < 10:
            ticks.publish(n=event.n + 10)

    bus.subscribe_inline("test.tick", echo)
    assert ticks.publish(n=1) and bus.flush(long)
    assert keep.numbers == [11, 1]


def test_a_pattern_is_refused(bus):
    with pytest.raises(ValueError, match="blank, \\* or >"):
        bus.subscribe_inline("test.*", print)
    with pytest.raises(ValueError, match="on_raise"):
        bus.subscribe_inline("train.step", print, on_raise="keep")
