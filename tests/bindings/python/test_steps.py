"""Is the step of an event known, on whichever thread it was published?"""

import threading

import pytest
import ringmain


def test_an_event_knows_its_step_on_whichever_thread_it_was_said(bus, ticks, keep, long):
    bus.subscribe(ticks, keep)
    with bus.follow_steps() as follow:
        ticks.publish(n=0)
        with bus.step(7):
            ticks.publish(n=1)
            with bus.step(phase="forward"):
                thread = threading.Thread(target=lambda: ticks.publish(n=2))
                thread.start()
                thread.join()
                with bus.step(micro_batch=2):
                    ticks.publish(n=3)
        ticks.publish(n=4)
        assert bus.flush(long)
        found = {event.n: follow.at(event) for batch in keep.batches for event in batch}
        assert found == {0: None, 1: (7, "", 0), 2: (7, "forward", 0), 3: (7, "forward", 2), 4: None}
        rows = {event.n: row for batch in keep.batches for event, row in zip(batch, follow.of(batch), strict=True)}
    assert [bool(rows[n]["inside"]) for n in range(5)] == [False, True, True, True, False]
    assert [int(rows[n]["step"]) for n in (1, 2, 3)] == [7, 7, 7]
    assert ringmain.name_text(int(rows[3]["phase"])) == "forward" and rows[3]["micro_batch"] == 2


def test_a_step_that_had_begun_is_not_guessed_at_and_none_is_known_behind_the_close(bus, ticks, keep, long):
    bus.subscribe(ticks, keep)
    with bus.step(1):
        follow = bus.follow_steps()
        ticks.publish(n=1)
    with bus.step(2):
        ticks.publish(n=2)
    assert bus.flush(long)
    events = [event for batch in keep.batches for event in batch]
    assert [follow.at(event) for event in events] == [None, (2, "", 0)]
    follow.close()
    follow.close()
    assert [follow.at(event) for event in events] == [None, None]


def test_it_outlives_its_bus():
    with ringmain.Bus("brief") as brief:
        follow = brief.follow_steps()
    follow.close()


def test_what_is_no_batch_is_refused(bus):
    with bus.follow_steps() as follow, pytest.raises(TypeError):
        follow.of(3)


def test_with_a_scope_end_those_that_began_inside_it_and_no_other(bus, long):
    with bus.mailbox("train.step") as box:
        outer, inner = bus.step(1), bus.step(phase="forward", micro_batch=2)
        outer.__enter__()
        inner.__enter__()
        outer.__exit__(None, None, None)
        with bus.step(2):
            inner.__exit__(None, None, None)  # it ended with the first step
            with bus.step(phase="backward"):
                pass
        assert bus.flush(long)
        told = [(one.step, one.phase, one.micro_batch, one.edge) for batch in box for one in batch]
    assert told == [(1, "", 0, "begin"), (1, "forward", 0, "begin"), (1, "forward", 2, "begin"), (1, "forward", 2, "end"),
                    (1, "forward", 0, "end"), (1, "", 0, "end"), (2, "", 0, "begin"), (2, "backward", 0, "begin"),
                    (2, "backward", 0, "end"), (2, "", 0, "end")]


def test_a_scope_that_another_thread_lets_go_ends_nothing_there(bus, long):
    with bus.mailbox("train.step") as box:
        made = []
        thread = threading.Thread(target=lambda: (made.append(bus.step(1)), made[0].__enter__(), hold.wait(long)))
        hold = threading.Event()
        thread.start()
        while not made or "open" not in repr(made[0]):
            threading.Event().wait(0.001)
        with bus.step(2):
            made.clear()
            hold.set()
            thread.join()
        assert bus.flush(long)
        assert sorted((one.step, one.edge) for batch in box for one in batch) == [
            (1, "begin"), (1, "end"), (2, "begin"), (2, "end")]
