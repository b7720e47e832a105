"""How far behind is a bus, and a progress bar that says so: `for batch in show_lag(tqdm(loader), bus)`.

The bar asks for the figures when it draws itself anyway, which tqdm limits; there is no thread. Any of tqdm's bars will do.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, NamedTuple, TypeVar

from . import _check

Bar = TypeVar("Bar")


class Lag(NamedTuple):
    """Events that wait to be heard, and events that found no room so far, each counted for each subscriber that did not get it."""

    queued: int
    lost: int

    def __str__(self) -> str:
        return f"{self.queued} queued" + (f", {self.lost} lost" if self.lost else "")


def lag_of(bus: Any = None) -> Lag:
    """Of a bus now; None: of the process's. RuntimeError: the bus is closed. Threads: any."""
    from . import Bus

    if bus is not None:
        _check.instance("bus", bus, Bus, "a ringmain.Bus, or None for the process's")
    stats = (Bus.process() if bus is None else bus).stats()
    channels = stats.channels.values()
    return Lag(queued=sum(one.pending for one in channels) + sum(one.pending for one in stats.subscriptions),
               lost=sum(one.full + one.no_memory + one.too_deep + one.evicted + one.discarded for one in channels)
               + sum(one.dropped for one in stats.subscriptions))


def show_lag(bar: Bar, bus: Any = None) -> Bar:
    """The same bar of tqdm's, which says behind its own words how many events are queued on the bus, and how many were lost.

    A bar whose bus is closed, or whose `postfix` is no text but what its `bar_format` reaches into, goes on without. TypeError: it is
    no bar of tqdm's. Threads: as the bar.
    """
    if not isinstance(getattr(type(bar), "format_dict", None), property):
        raise TypeError(f"show_lag() takes a bar of tqdm's, as in show_lag(tqdm(loader)), and not {bar!r}")
    with contextlib.suppress(RuntimeError):  # closed
        lag_of(bus)  # refuses what is no bus
    bar._ringmain_bus = bus  # type: ignore[attr-defined]
    of: Any = type(bar)
    if not hasattr(of, "_ringmain_shows_lag"):
        bar.__class__ = _with_lag(of)
    return bar


@functools.cache
def _with_lag(of: type[Any]) -> type[Any]:
    """A class of bars that is that one, but for what it says."""

    def format_dict(self: Any) -> Any:
        said = super(made, self).format_dict
        if not hasattr(self, "_ringmain_bus") or not isinstance(said.get("postfix") or "", str):
            return said  # one made of this class, and not given to show_lag(), or what a bar_format reaches into
        try:
            lag = str(lag_of(self._ringmain_bus))
        except RuntimeError:  # closed: a bar may outlive its bus
            return said
        said["postfix"] = ", ".join(str(word) for word in (said.get("postfix"), lag) if word)
        return said

    made: type[Any] = type(of.__name__, (of,), {"format_dict": property(format_dict), "_ringmain_shows_lag": True, "__module__": of.__module__})
    return made


__all__ = ["Lag", "lag_of", "show_lag"]
