"""The figures of a bus in a notebook: `ringmain.notebook.show(bus)` shows a table that goes on changing until stop().

A bus by itself, as the last line of a cell, is shown as the same table once.
"""

from __future__ import annotations

import atexit
import html
import logging
import re
import threading
import time
import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from . import _check
from ._extra import need
from ._types import check_pattern

_log = logging.getLogger("ringmain")
_shown: weakref.WeakValueDictionary[tuple[int, str], Live] = weakref.WeakValueDictionary()
_CHANNEL = ("channel", "events", "per second", "queued", "lost", "subscribers")
_SUBSCRIBER = ("subscriber", "events", "heard", "queued", "lost")


def matches(pattern: str, name: str) -> bool:
    """As a bus matches (bus/pattern.hpp): * is one token, > one and all that follow; "its.name" is "its.name@2", too."""
    words, tokens = pattern.split("."), (name if "@" in pattern else re.sub(r"@[0-9]+$", "", name)).split(".")
    if words[-1] == ">":
        words.pop()
        tokens = tokens[:len(words)] if len(tokens) > len(words) else []
    return len(words) == len(tokens) and all(word in ("*", token) for word, token in zip(words, tokens, strict=True))


def _table(heads: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    left = " style='text-align:left'"
    cells = "".join(f"<tr><td{left}>{html.escape(name)}</td>" + "".join(f"<td>{figure:,.0f}</td>" for figure in figures) + "</tr>"
                    for name, *figures in rows)
    return f"<table><tr>{''.join(f'<th{left}>{head}</th>' for head in heads)}</tr>{cells}</table>"


class Live:
    """Tables of a bus's channels and subscribers. As it is: what it shows when it is asked; show() makes one that updates itself. Threads: any."""

    def __init__(self, bus: Any, what: str = ">") -> None:
        from . import Bus

        _check.instance("bus", bus, Bus, "a ringmain.Bus")
        check_pattern(_check.text("what", what))
        self.bus, self.what = bus, what
        self.updates = 0
        self._failed = False
        self._before: dict[str, int] = {}
        self._before_s = time.monotonic()
        self._rates: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._handle: Any = None
        self._last = ""

    def rows(self) -> list[tuple[str, int, float, int, int, int]]:
        """channel, events, per second since the last update, queued, lost, subscribers: of channels on which anything was said."""
        if self.bus.closed:
            return []
        return [(one.name, one.offered, self._rates.get(one.name, 0.0), one.pending,
                 one.full + one.no_memory + one.too_deep + one.evicted + one.discarded, one.subscribers)
                for one in sorted(self.bus.stats().channels.values(), key=lambda one: one.name)
                if one.offered and matches(self.what, one.name)]

    def subscribers(self) -> list[tuple[str, int, int, int, int]]:
        """name, events, heard, queued, lost: of all subscribers of the bus that have been offered anything."""
        if self.bus.closed:
            return []
        return [(one.name or one.channel, one.offered, one.delivered, one.pending, one.dropped)
                for one in self.bus.stats().subscriptions if one.offered]

    def look(self) -> None:
        """Takes the rates: what was said since the last look."""
        if self.bus.closed:
            return
        now, counts = time.monotonic(), {one.name: one.offered for one in self.bus.stats().channels.values()}
        passed = max(now - self._before_s, 1e-9)
        self._rates = {name: (count - self._before.get(name, 0)) / passed for name, count in counts.items()}
        self._before, self._before_s = counts, now

    def _repr_html_(self) -> str:
        if self.bus.closed and self._last:  # what was known last
            return self._last
        from .progress import lag_of

        state = "closed" if self.bus.closed else str(lag_of(self.bus))
        self._last = (f"<p>bus {html.escape(self.bus.name)}: {state}</p>" + _table(_CHANNEL, self.rows())
                      + _table(_SUBSCRIBER, self.subscribers()))
        return self._last

    def __repr__(self) -> str:
        how = "stopped" if self._stop.is_set() else "updates itself" if self._thread is not None else "as it is now"
        return f"<{self.what!r} of {self.bus!r}, {how}>"

    # --- updating ---

    def _start(self, display: Any, every_s: float) -> None:
        self._handle = display(self, display_id=True)
        if self._handle is None:  # no shell that shows anything twice
            self._stop.set()
            return
        self._thread = threading.Thread(target=self._update, args=(every_s,), name="ringmain-notebook", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def _update(self, every_s: float) -> None:
        while not self._stop.wait(min(every_s, threading.TIMEOUT_MAX)) and not self.bus.closed:
            self._show()
        if not self._failed:
            self._show()
        self._stop.set()

    def _show(self) -> None:
        try:
            self.look()
            self._handle.update(self)
            self.updates += 1
        except BaseException as error:  # SystemExit too: it is the display's, and ends no more than that
            self._failed = True
            self._stop.set()
            _log.warning("the display of %r ends: %s: %s", self.bus, type(error).__name__, error)

    @property
    def showing(self) -> bool:
        return self._thread is not None and not self._stop.is_set()

    def stop(self, timeout: float | None = 5.0) -> bool:
        """Shows the last figures and ends. False: not within `timeout` seconds. May be called again."""
        limit = _check.seconds(timeout)
        atexit.unregister(self.stop)
        self._stop.set()
        if self._thread is None or self._thread is threading.current_thread():
            return True
        self._thread.join(None if limit is None else min(limit, threading.TIMEOUT_MAX))
        return not self._thread.is_alive()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.stop()


def show(bus: Any = None, what: str = ">", *, every: float = 1.0) -> Live:
    """Shows the channels that match in the cell's output, anew each `every` seconds, until stop(), or the end of the bus.

    Shown again, as by a cell that is run again, the same bus and pattern are updated in the new place only. bus: None is the
    process's. ImportError: IPython is not installed.
    """
    from . import Bus

    every_s = _check.seconds(every)
    if every_s is None or every_s <= 0:
        raise ValueError(f"every is {every!r}; give seconds above 0")
    display = need("IPython.display", "ringmain.notebook.show()", "ipython").display
    made = Live(Bus.process() if bus is None else bus, what)
    key = (id(made.bus), what)
    before = _shown.get(key)
    if before is not None:
        before.stop()
    _shown[key] = made
    made.look()
    made._start(display, every_s)
    return made


__all__ = ["Live", "show"]
