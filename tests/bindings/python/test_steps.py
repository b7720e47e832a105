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
