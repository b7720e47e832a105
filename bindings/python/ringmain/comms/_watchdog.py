"""Which operations are open for too long, and what is done before the group is given up?"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .. import _check, _native
from .._bus import Bus, check_callback
from ._flight import FlightRecorderHook, hooks_with_timeout
from ._hooks import _attached_bus
from ._work import seconds_of

_open: set[Watchdog] = set()  # one that nobody holds goes on


class Watchdog:
    """Looks at the operations of all groups of a bus that are open, in a thread of C++ that never takes the GIL, and says each that is
    overdue once on `collective.overdue`.

    An operation that was called with a timeout of its own has that as its deadline; others these two.
    `from_issue`: seconds, or a timedelta, for an operation that has not begun, from its issue; `from_start`: for one that has, from its
    start; None: the time-out of its communicator (new_comm(timeout=…), register_with_comm()), and none where that is not known. `period`:
    between two looks, from 1 ms; 0: no thread looks, and the program calls look(). OSError: there is no thread for it.

    `before_abort(event)` is called with the first operation that is overdue, once in this process whichever watchdog finds it, in a
    thread of its own that Python makes; the look waits for it without the GIL, `before_abort_within` seconds at most, and then leaves it.
    Before it, in C++ and without the GIL, `recorder`, a FlightRecorderHook with a rank, writes its file; the two share that time.
    What takes longer is said on `bus.slow_subscriber`. What it raises is logged by the logger "ringmain", and counted in `raised`. Then, with `abort`, the groups of what is overdue are given
    up; those of torch.distributed cannot be, and their abort hooks are called.

    `bus`: without one that of ringmain.torch.attach(), or the process's. It goes on until close(), the end of its `with`, or that of the
    interpreter, whether anybody holds it or not. In a forked child it looks at nothing. Threads: any.
    """

    def __init__(self, bus: Bus | None = None, *, from_issue: Any = None, from_start: Any = None, period: Any = 1.0,
                 before_abort: Callable[[_native.Record], object] | None = None, before_abort_within: Any = 15.0,
                 abort: bool = False, recorder: FlightRecorderHook | None = None) -> None:
        bus = bus if bus is not None else _attached_bus()
        _check.instance("bus", bus, Bus, "a ringmain.Bus")
        if recorder is not None:
            _check.instance("recorder", recorder, FlightRecorderHook, "a FlightRecorderHook")
        if before_abort is not None:
            check_callback(before_abort)
        self._native = _native.Watchdog(bus._native, _deadline("from_issue", from_issue), _deadline("from_start", from_start),
                                        _seconds("period", period), before_abort, _seconds("before_abort_within", before_abort_within),
                                        bool(abort), None if recorder is None else recorder._native)
        _open.add(self)

    def register_with_comm(self, comm: Any) -> None:
        """All groups of the bus are watched. Of this one, a process group of PyTorch's that ringmain.torch hears, the time-out is looked up,
        which is then the deadline where none was given; of a communicator of ringmain.comms it is known."""
        hooks_with_timeout(comm)

    def look(self) -> list[_native.Record]:
        """Looks now, without the GIL. The operations that this look found to be overdue, and none before: as on `collective.overdue`."""
        return self._native.look()

    @property
    def looks(self) -> int:
        """Its heartbeat: how many looks it has made. One that does not move is a watchdog that is stuck."""
        return self._native.looks

    @property
    def raised(self) -> int:
        """How often before_abort raised: 0 or 1."""
        return self._native.raised

    @property
    def closed(self) -> bool:
        return self._native.closed

    def close(self) -> None:
        """When it has returned, it looks no more. Waits, without the GIL, for a look that is being made; not inside before_abort or a hook that
        the look calls: there it ends after that look. Again: nothing."""
        _open.discard(self)
        self._native.close()

    def __enter__(self) -> Watchdog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<watchdog, {self.looks} looks{', closed' if self.closed else ''}>"


def _seconds(what: str, value: Any) -> float:
    try:
        found = seconds_of(value)
    except (TypeError, ValueError):
        found = None
    if found is None:
        kind = TypeError if value is None or isinstance(value, bool) or not hasattr(value, "__float__") else ValueError
        raise kind(f"{what} is {value!r}; give seconds from 0, as a number or a timedelta")
    return found


def _deadline(what: str, value: Any) -> float | None:
    if value is None:
        return None
    found = _seconds(what, value)
    if found == 0:
        raise ValueError(f"{what} is {value!r}; give seconds above 0, or None for the time-out of the operation's communicator")
    return found


def _close_all() -> None:
    for watchdog in list(_open):
        watchdog.close()


atexit.register(_close_all)
