"""Does a notebook's display show the figures, go on changing, and end? Against a display that keeps what it is given; with IPython there,
in a shell of its own."""

import sys
import types

import pytest
import ringmain
from ringmain.notebook import Live, matches, show


class Handle:
    def __init__(self):
        self.shown = []

    def update(self, what):
        self.shown.append(what._repr_html_())


@pytest.fixture
def display(monkeypatch):
    """IPython.display, as far as it is needed."""
    handles = []

    def display(what, display_id):
        assert display_id is True
        handles.append(Handle())
        handles[-1].update(what)
        return handles[-1]

    module = types.ModuleType("IPython.display")
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return handles


def test_a_bus_is_a_table_of_what_was_said_on_it(bus, ticks, long):
    bus.subscribe("test.<odd", lambda events: None, name="hears & sees")
    bus.channel("test.<odd", dtype=[("n", "i8")]).publish(n=1)
    bus.channel("test.silent", dtype=[("n", "i8")])
    with bus.mailbox(ticks, queue_events=64):
        for n in range(1500):
            ticks.publish(n=n)
        assert bus.flush(long)
        told = bus._repr_html_()
    assert "<td style='text-align:left'>test.tick</td><td>1,500</td>" in told and "test.silent" not in told
    assert "bus test: 64 queued, 1436 lost" in told and "test.&lt;odd" in told
    left = "<td style='text-align:left'>"
    assert f"{left}hears &amp; sees</td><td>1</td><td>1</td><td>0</td><td>0</td>" in told
    assert f"{left}mailbox of test.tick</td><td>1,500</td><td>0</td><td>64</td><td>1,436</td>" in told
    assert [row[0] for row in Live(bus, "test.tick").rows()] == ["test.tick"] and Live(bus, "other.>").rows() == []
    assert repr(Live(bus)) == "<'>' of <bus 'test'>, as it is now>"


def test_a_rate_is_what_was_said_since_the_last_look(bus, ticks, monkeypatch, long):
    clock = iter([0.0, 10.0, 12.0])
    monkeypatch.setattr("ringmain.notebook.time.monotonic", lambda: next(clock))
    bus.subscribe(ticks, lambda events: None)
    live = Live(bus)
    for n, rate in ((100, 10.0), (50, 25.0)):
        for _ in range(n):
            ticks.publish(n=n)
        assert bus.flush(long)
        live.look()
        assert live.rows()[0][2] == rate


def test_it_goes_on_changing_until_it_is_stopped(bus, ticks, display, long, eventually):
    with show(bus, every=0.001) as live:
        assert live.showing and "updates itself" in repr(live)
        bus.subscribe(ticks, lambda events: None)
        for n in range(7):
            assert ticks.publish(n=n)
        assert bus.flush(long)
        (handle,) = display
        assert eventually(lambda: "<td style='text-align:left'>test.tick</td><td>7</td>" in handle.shown[-1])
        assert "test.tick" not in handle.shown[0]
    assert not live.showing and live.stop(long) and "stopped" in repr(live)
    shown = len(handle.shown)
    assert shown >= 2 and live.updates == shown - 1


def test_the_last_figures_are_shown_at_the_stop(bus, ticks, display, long):
    live = show(bus, every=3600)
    bus.subscribe(ticks, lambda events: None)
    assert ticks.publish(n=1) and bus.flush(long)
    assert live.stop(long) and "test.tick" in display[0].shown[-1]


def test_shown_again_it_is_updated_in_the_new_place_only(bus, display):
    first = show(bus, "test.*", every=3600)
    other = show(bus, every=3600)
    second = show(bus, "test.*", every=3600)
    assert not first.showing and second.showing and other.showing
    assert second.stop() and other.stop()


def test_the_end_of_a_bus_ends_it_with_what_was_known_last(ticks, display, eventually):
    with ringmain.Bus("brief") as brief:
        said = brief.channel("brief.said", dtype=[("n", "i8")])
        brief.subscribe(said, lambda events: None)
        live = show(brief, every=0.001)
        assert said.publish(n=1)
        assert eventually(lambda: "brief.said" in display[0].shown[-1])
    assert eventually(lambda: not live.showing)
    assert "brief.said" in display[0].shown[-1]


@pytest.mark.parametrize("error", [OSError, SystemExit])
def test_a_display_that_fails_ends_and_says_so_once(bus, display, caplog, eventually, error):
    def fail(what):
        raise error("no more")

    live = show(bus, every=0.001)
    display[0].update = fail
    assert eventually(lambda: not live.showing) and live.stop()
    assert [record.message for record in caplog.records] == [f"the display of <bus 'test'> ends: {error.__name__}: no more"]


def test_however_seldom_it_is_updated_and_however_long_one_waits(bus, display):
    for every in (1e10, float("inf")):
        live = show(bus, every=every)
        assert live.stop(float("inf")) and live.updates == 1, "the last figures, and no error"


def test_where_nothing_can_be_shown_twice_it_is_shown_once(bus, display, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython.display"], "display", lambda what, display_id: None)
    live = show(bus)
    assert not live.showing and live.stop() and "stopped" in repr(live)


def test_without_ipython_one_sentence_says_what_to_install(bus, monkeypatch):
    for name in ("IPython", "IPython.display"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"ringmain\.notebook\.show\(\) needs IPython, which is not installed: pip install ipython$"):
        show(bus)


def test_wrong_arguments_get_a_sentence(bus, display):
    for call, why in ((lambda: show(7), "bus is 7"), (lambda: show(bus, 7), "what is 7"), (lambda: show(bus, "a..b"), "empty token"),
                      (lambda: show(bus, every=0), "every is 0"), (lambda: show(bus, every="x"), "timeout is 'x'|every is")):
        with pytest.raises((TypeError, ValueError), match=why):
            call()


@pytest.mark.parametrize("pattern", [">", "*", "a.>", "a.*", "*.b", "a.b.>", "a", "a.b", "*.>", "a@2", "a.b@2"])
def test_patterns_match_as_the_bus_does(pattern):
    with ringmain.Bus("patterns") as bus:
        names = ["a", "a.b", "a.b.c", "b", "b.b", "a@2", "a.b@2", "a.b@x"]
        channels = [bus.channel(name, dtype=[("n", "i8")]) for name in names]
        box = bus.mailbox(pattern)
        for channel in channels:
            channel.publish(n=1)
        assert bus.flush(60)
        assert {batch.channel for batch in box} == {name for name in names if matches(pattern, name)}


def test_ipython_itself(bus, ticks, long, eventually):
    pytest.importorskip("IPython", reason="IPython is not installed")
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        shell.display_pub = kept = CapturingDisplayPublisher()
        with show(bus, every=0.001):
            bus.subscribe(ticks, lambda events: None)
            assert ticks.publish(n=1) and bus.flush(long)
            assert eventually(lambda: "test.tick" in kept.outputs[-1]["data"]["text/html"])
        assert not kept.outputs[0]["update"] and all(one["update"] for one in kept.outputs[1:])
        assert len({one["transient"]["display_id"] for one in kept.outputs}) == 1
    finally:
        InteractiveShell.clear_instance()
