"""Does a bar say how far behind the bus is, and cost nothing where nobody asked?"""

import pytest
import ringmain
from ringmain.progress import Lag, lag_of, show_lag


class Bar:
    """What tqdm's bars have."""

    def __init__(self, postfix=None):
        self.postfix = postfix

    @property
    def format_dict(self):
        return {"postfix": self.postfix}


@pytest.fixture
def behind(bus, ticks, long):
    """A bus on which 64 events wait and 36 found no room."""
    with bus.mailbox(ticks, queue_events=64):
        for n in range(100):
            assert ticks.publish(n=n)
        assert bus.flush(long)
        yield bus


def test_what_waits_and_what_was_lost_is_counted(behind, ticks):
    assert lag_of(behind) == Lag(64, 36) and str(lag_of(behind)) == "64 queued, 36 lost"


def test_a_bus_that_keeps_up_has_no_lag(bus, ticks, keep, long):
    bus.subscribe(ticks, keep)
    assert ticks.publish(n=1) and bus.flush(long)
    assert lag_of(bus) == (0, 0) and str(lag_of(bus)) == "0 queued"


def test_a_bar_says_it_behind_its_own_words_each_time_it_draws_itself(behind, ticks, long):
    bar = Bar("loss=2.5")
    assert show_lag(bar, behind) is bar and isinstance(bar, Bar) and type(bar).__name__ == "Bar"
    assert bar.format_dict["postfix"] == "loss=2.5, 64 queued, 36 lost"
    assert ticks.publish(n=1) and behind.flush(long)
    bar.postfix = None
    assert bar.format_dict["postfix"] == "64 queued, 37 lost"
    show_lag(bar, behind)
    assert bar.format_dict["postfix"] == "64 queued, 37 lost", "asked twice it says it once"


def test_only_the_bar_that_was_asked_says_it(behind):
    asked, other = show_lag(Bar(), behind), Bar("own")
    assert asked.format_dict["postfix"] and other.format_dict == {"postfix": "own"} and type(other) is Bar


def test_a_bar_whose_format_reaches_into_its_postfix_keeps_it(behind):
    assert show_lag(Bar(["Batch", {"value": 3}]), behind).format_dict == {"postfix": ["Batch", {"value": 3}]}


def test_another_bar_of_its_class_says_its_own_words(behind):
    assert type(show_lag(Bar(), behind))("own").format_dict == {"postfix": "own"}


def test_a_bar_that_outlives_its_bus_goes_on():
    with ringmain.Bus("brief") as brief:
        bar = show_lag(Bar("own"), brief)
    assert bar.format_dict == {"postfix": "own"}


def test_what_is_no_bar_or_no_bus_is_refused(bus):
    with pytest.raises(TypeError, match=r"show_lag\(\) takes a bar of tqdm's"):
        show_lag([1, 2], bus)
    for call in (lambda: show_lag(Bar(), 7), lambda: lag_of(7)):
        with pytest.raises(TypeError, match=r"bus is 7; give a ringmain\.Bus"):
            call()
    bus.close()
    with pytest.raises(RuntimeError, match="the bus is closed"):
        lag_of(bus)
    assert show_lag(Bar("own"), bus).format_dict == {"postfix": "own"}, "a bus that is closed costs the training nothing"


@pytest.mark.parametrize("disabled", [False, True])
def test_tqdm_itself(behind, disabled, capsys):
    tqdm = pytest.importorskip("tqdm", reason="tqdm is not installed")
    import tqdm.auto
    bar = show_lag(tqdm.tqdm(range(3), mininterval=0, ncols=120, disable=disabled), behind)
    for n in bar:
        bar.set_postfix(n=n)
    written = capsys.readouterr().err
    assert ("n=2, 64 queued, 36 lost]" in written) != disabled, written
    bar = show_lag(tqdm.tqdm(range(2), mininterval=0, disable=disabled, bar_format="{postfix[0]} {postfix[1][n]}", postfix=["at", {"n": 7}]), behind)
    assert list(bar) == [0, 1] and ("at 7" in capsys.readouterr().err) != disabled
    assert [n for n in show_lag(tqdm.auto.tqdm(range(3), disable=disabled), behind)] == [0, 1, 2]
