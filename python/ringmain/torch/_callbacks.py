"""Who is called when something happens, while others come and go?

A list of callbacks that any thread may change at any time, also inside a callback. Firing goes through a snapshot, no
lock is held while a callback runs, and a callback that has been removed is not called again: outside of callbacks
remove() returns when no call of it is running any more; inside a callback it does not wait.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, ParamSpec

P = ParamSpec("P")

_gate = threading.Condition()  # guards the counts below for moments only, never across a callback
_here = threading.local()  # how many callbacks this thread is inside of


def _forget_other_threads() -> None:
    """In a forked child the other threads are gone, and with them whatever they held."""
    global _gate
    _gate = threading.Condition()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


def inside_callback() -> bool:
    """Whether this thread is inside a callback of any list."""
    return getattr(_here, "depth", 0) > 0


class Handle:
    """Keeps one callback attached. Dropping the handle keeps the callback; remove() ends it, as often as called."""

    __slots__ = ("_list", "_closed", "_running", "call")

    def __init__(self, owner: CallbackList[Any], call: Callable[..., Any]) -> None:
        self._list = owner
        self._closed = False
        self._running = 0
        self.call = call

    @property
    def attached(self) -> bool:
        return not self._closed

    def remove(self) -> bool:
        """Whether it was attached. Outside of callbacks: when this returns, the callback is not running any more."""
        was_attached = self._list._take_out(self)
        if inside_callback():
            return was_attached
        gate = _gate
        with gate:
            gate.wait_for(lambda: self._running == 0)
        return was_attached

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _run(self, *args: Any, **kwargs: Any) -> None:
        gate = _gate
        with gate:
            if self._closed:
                return
            self._running += 1
        _here.depth = getattr(_here, "depth", 0) + 1
        try:
            self.call(*args, **kwargs)
        finally:
            _here.depth -= 1
            with gate:
                self._running -= 1
                if self._closed:
                    gate.notify_all()


class CallbackList(Generic[P]):
    """Callbacks in the order in which they came; the same one may be in it several times."""

    def __init__(self) -> None:
        self._handles: tuple[Handle, ...] = ()

    def add(self, call: Callable[P, Any]) -> Handle:
        if not callable(call):
            raise TypeError(f"a callback is callable, {type(call).__name__} is not")
        handle = Handle(self, call)
        with _gate:
            self._handles = (*self._handles, handle)
        return handle

    def find(self, call: Callable[P, Any]) -> Handle | None:
        """The first whose callback equals this one: bound methods compare equal."""
        return next((handle for handle in self._handles if handle.call == call), None)

    def clear(self) -> None:
        for handle in self._handles:
            handle.remove()

    def __len__(self) -> int:
        return len(self._handles)

    @property
    def calls(self) -> list[Callable[P, Any]]:
        return [handle.call for handle in self._handles]

    def fire(self, failed: Callable[[Handle, Exception], None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Calls each one; what it throws goes to `failed`, and the next one is called all the same."""
        for handle in self._handles:
            try:
                handle._run(*args, **kwargs)
            except Exception as error:
                failed(handle, error)

    def _take_out(self, handle: Handle) -> bool:
        with _gate:
            if handle._closed:
                return False
            handle._closed = True
            self._handles = tuple(other for other in self._handles if other is not handle)
            return True
