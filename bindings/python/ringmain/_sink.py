"""What sinks in Python have in common: a thread of their own that takes events from mailboxes and gives them to a backend.

Publishers wait for nobody: what a slow backend leaves in the mailbox is bounded, and what does not fit is lost and counted. The
other callbacks of the bus do not wait for it either. An error of the backend's is counted, and the first one logged.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from . import _check, _native
from ._mailbox import Mailbox

log = logging.getLogger("ringmain")
AT_EXIT_S = 5.0
WAIT_MAX_S = 86400.0  # what poll() and locks take
LINGER_S = 0.1  # after each turn, so that events which come one by one do not cost the training a wake-up and the GIL each
EVENTS_PER_SECOND = 500_000  # that a mailbox has room for meanwhile


@dataclass(frozen=True)
class SinkStats:
    """Events that were taken; that found no room (`lost`); what was given to the backend; what it refused (`failed`), and its
    last words; and values that are no figures (`left_out`): NaN, infinities, and in histograms what is below 0."""

    events: int
    lost: int
    given: int
    failed: int
    last_error: str
    left_out: int = 0


def check_method(what: str, value: Any, method: str, how: str) -> None:
    if not callable(getattr(value, method, None)):
        raise TypeError(f"{what} is {value!r}, which has no {method}(); give {how}")


def patterns_of(what: str | Iterable[str]) -> list[str]:
    found = [what] if isinstance(what, str) else list(what) if isinstance(what, Iterable) else []
    if not found or not all(isinstance(one, str) for one in found):
        raise TypeError(f"a sink hears a pattern or several, as in 'train.>', and not {what!r}")
    return found


def _seconds_above_0(what: str, value: Any) -> float:
    try:
        found = float(value) if hasattr(value, "__float__") and not isinstance(value, bool) else 0.0
    except OverflowError:
        found = 0.0
    if not found > 0:
        raise (ValueError if hasattr(value, "__float__") else TypeError)(f"{what} is {value!r}; give seconds above 0")
    return found


class Sink:
    """Hears until close(), or the end of its bus. A context manager. Threads: any."""

    def __init__(self, what: str | Iterable[str], bus: Any, *, title: str, every: float, queue_events: int) -> None:
        from . import Bus

        if bus is not None:
            _check.instance("bus", bus, Bus, "a ringmain.Bus, or None for the process's")
        self.bus = Bus.process() if bus is None else bus
        self._title, self._every = title, _seconds_above_0("every", every)
        self._events = self._given = self._failed = self._lost = self._left_out = 0
        self._last_error = ""
        self._told = self._closing = False
        self._held = threading.RLock()  # a signal's handler may ask for stats() too
        self._left: list[_native.Batch] = []  # of mailboxes that ended, with their bus as a rule
        self._ended = threading.Event()  # Thread.join() that Ctrl-C interrupts takes the thread for ended (CPython gh-90882)
        self._linger_ms = 1000 * min(LINGER_S, _check.whole("queue_events", queue_events, 1, 2**32 - 1) / EVENTS_PER_SECOND)
        self._pid, self._wake = os.getpid(), os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._boxes: list[Mailbox] = []
        try:
            for pattern in patterns_of(what):
                box = self.bus.mailbox(pattern, name=title, queue_events=queue_events)
                box.close = functools.partial(self._keep_and_close, box, box.close)  # type: ignore[method-assign]
                self._boxes.append(box)
        except BaseException:
            self._close_boxes()
            raise
        self._thread = threading.Thread(target=self._run, name=f"ringmain-{title}", daemon=True)

    def _start(self) -> None:
        """At the end of the constructor."""
        self._thread.start()
        atexit.register(self.close, AT_EXIT_S)

    # --- what a sink does ---

    def _prepare(self) -> None:
        """Before all else, in its thread: a backend may make it wait."""

    def _take(self, batch: _native.Batch) -> None:
        raise NotImplementedError

    def _flush(self, last: bool) -> None:
        """Each `every` seconds, and once more at the end."""

    # --- its thread ---

    def _run(self) -> None:
        rest, poll = select.poll(), select.poll()
        for one in (rest, poll):
            one.register(self._wake, select.POLLIN)
        try:
            self._guarded(self._prepare)
            self._guarded(self._hear, poll, rest)
            self._guarded(self._take_all)
            self._guarded(self._flush, True)
        finally:
            self._close_boxes()
            atexit.unregister(self.close)
            self._ended.set()

    def _hear(self, poll: Any, rest: Any) -> None:
        for box in self._boxes:
            with contextlib.suppress(RuntimeError):  # it ended before we began
                poll.register(box.fileno(), select.POLLIN)
        due = time.monotonic() + self._every
        while self._boxes and not self._closing:
            poll.poll(min(max(0.0, due - time.monotonic()), WAIT_MAX_S) * 1000)
            self._take_all()
            if time.monotonic() >= due:
                self._guarded(self._flush, False)
                due = time.monotonic() + self._every
            rest.poll(self._linger_ms)

    def _take_all(self) -> None:
        for box in self._boxes:
            for batch in self._batches_of(box):
                self._give(batch)
        with self._lock():
            left, self._left = self._left, []
        for batch in left:
            self._give(batch)

    def _batches_of(self, box: Mailbox) -> Iterator[_native.Batch]:
        """What is there now. What comes meanwhile is the next turn's: a publisher that is faster than the backend holds up no end."""
        left = box.stats().pending
        while left > 0:
            with self._lock():
                batch = box.take()
            if batch is None:
                return
            left -= len(batch)
            yield batch

    def _lock(self) -> contextlib.AbstractContextManager[Any]:
        """In a forked child it may be held by a thread that is not there."""
        return self._held if os.getpid() == self._pid else contextlib.nullcontext()

    def _give(self, batch: _native.Batch) -> None:
        self._events += len(batch)
        self._guarded(self._take, batch)

    def _guarded(self, call: Any, *arguments: Any) -> None:
        try:
            call(*arguments)
        except BaseException as error:  # SystemExit too: it is the backend's, and does not end the sink
            self._refused(error)

    def _refused(self, error: BaseException) -> None:
        self._failed += 1
        try:
            self._last_error = f"{type(error).__name__}: {error}"
        except BaseException:
            self._last_error = type(error).__name__
        if not self._told:
            self._told = True
            with contextlib.suppress(BaseException):  # a handler's
                log.warning("the sink %s: %s; training and other subscribers go on, and further errors are only counted", self._title,
                            self._last_error)

    # --- for everybody ---

    def stats(self) -> SinkStats:
        with self._lock():
            lost = self._lost + sum(box.stats().dropped for box in self._boxes)
        return SinkStats(self._events, lost, self._given, self._failed, self._last_error, self._left_out)

    def close(self, timeout: float | None = 10.0) -> bool:
        """Gives what was published before to the backend, and ends. May be called again. False: not within
        `timeout` seconds, or called by the backend, inside which nobody can wait for it."""
        limit = _check.seconds(timeout)
        if os.getpid() != self._pid:  # a forked child: the thread and the backend are the parent's
            return True
        end = None if limit is None else time.monotonic() + limit
        if not self._closing and not self.bus.closed:
            self.bus.flush(limit)
        self._closing = True
        self._wake_up()
        if threading.current_thread() is self._thread:
            return False
        return self._ended.wait(None if end is None else min(max(0.0, end - time.monotonic()), threading.TIMEOUT_MAX))

    def _close_boxes(self) -> None:
        for box in list(self._boxes):
            box.close()

    def _keep_and_close(self, box: Mailbox, close: Callable[[], None]) -> None:
        """In place of a mailbox's close(), which the bus calls at its end: nothing that was taken in is lost."""
        with self._lock():
            if box in self._boxes:
                self._left += self._batches_of(box)
                self._lost += box.stats().dropped
                self._boxes = [one for one in self._boxes if one is not box]
            close()
        if os.getpid() == self._pid:
            self._wake_up()

    def _wake_up(self) -> None:
        with contextlib.suppress(OSError):
            os.eventfd_write(self._wake, 1)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            os.close(self._wake)

    def __repr__(self) -> str:
        stats = self.stats()
        return (f"<{self._title} of {self.bus!r}: {stats.events} events, {stats.lost} lost, {stats.failed} refused"
                f"{', closed' if self._closing else ''}>")

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()
