"""An operation that was handed to a backend, for who waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

from .. import _check, _native
from .._vetoed import OperationVetoed as OperationVetoed


class CommunicatorAborted(RuntimeError):
    """The group was given up while the operation went on."""


def seconds_of(timeout: Any) -> float | None:
    """None: for ever."""
    found = timeout.total_seconds() if isinstance(timeout, timedelta) else _check.seconds(timeout)
    if found is not None and found < 0:
        raise ValueError(f"a time of {timeout} was given; give seconds from 0, or None for no limit")
    return found


class Work:
    """What an operation returns. Threads: any."""

    def __init__(self) -> None:
        raise TypeError("a Work is what an operation such as comm.all_reduce(…) returns")

    _operation: _native.Operation | None  # None: its backend is not who says its end
    _what: str
    _timeout: float | None

    @classmethod
    def _of(cls, operation: _native.Operation | None, what: str, timeout: float | None = None) -> Work:
        made = cls.__new__(cls)
        made._operation, made._what, made._timeout = operation, what, timeout
        made._done = threading.Event()
        made._lock = threading.Lock()
        made._error = None
        made._after = None
        made._ran_out = None
        return made

    _done: threading.Event
    _lock: threading.Lock
    _error: BaseException | None
    _after: Callable[[BaseException | None], object] | None  # called once it is over
    _ran_out: Callable[[TimeoutError], object] | None  # who decides for all ranks, and sees to it that it is over soon

    def wait(self, timeout: Any = None) -> None:
        """Returns when the operation is done; raises what it failed with, TimeoutError after `timeout` seconds, or a timedelta
        (without one, that of its communicator)."""
        limit = seconds_of(timeout)
        if not self._done.is_set():
            with self._operation.waiting() if self._operation is not None else nullcontext():
                self._block(limit if limit is not None else self._timeout)
        if self._error is not None:
            raise self._error

    wait_blocking = wait

    def is_completed(self) -> bool:
        """Is it over, whichever way?"""
        return self._done.is_set()

    def _block(self, limit: float | None) -> None:
        if self._done.wait(limit):
            return
        error = TimeoutError(f"{self._what}: not all ranks have come within {limit} s")
        if self._ran_out is None:
            return self._fail(error, "timed_out")
        self._ran_out(error)
        self._done.wait()

    # The first of the two is believed.

    def _complete(self) -> None:
        self._over(None, lambda operation: operation.completed())

    def _fail(self, error: BaseException, how: str = "error") -> None:
        self._over(error, lambda operation: operation.failed(str(error), how))

    def _over(self, error: BaseException | None, say: Callable[[_native.Operation], bool]) -> None:
        with self._lock:
            if self._done.is_set():
                return
            self._error = error
            if self._operation is not None:
                say(self._operation)  # before anybody goes on
            self._done.set()
        if self._after is not None:
            self._after(error)

    def __repr__(self) -> str:
        state = "under way" if not self._done.is_set() else "completed" if self._error is None else "failed"
        return f"<{self._what}, {state}>"
