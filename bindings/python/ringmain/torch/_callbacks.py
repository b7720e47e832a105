"""Which callbacks are called when something happens, while others come and go?

A list of callbacks that any thread may change at any time, also inside a callback. Firing goes through a snapshot, no
lock is held while a callback runs, and a callback that has been removed is not called again: outside of callbacks
remove() returns when no call of it is running any more; inside a callback it does not wait.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, MutableSequence
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

    def __repr__(self) -> str:
        called = getattr(self.call, "__qualname__", None) or repr(self.call)
        return f"<callback {called}{'' if self.attached else ', ended'}>"

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
    """Callbacks in the order in which they came; the same one may be in it several times.

    `follows`: a list that other code owns. What it puts into that list is called, what it takes out is not called again,
    and what comes and goes here comes and goes there.
    """

    def __init__(self, follows: list[Callable[P, Any]] | None = None) -> None:
        self._known: tuple[Handle, ...] = ()
        self._follows = follows

    def __repr__(self) -> str:
        return f"<{len(self.calls)} callbacks>"

    @property
    def _handles(self) -> tuple[Handle, ...]:
        if self._follows is not None:
            with _gate:
                self._catch_up(self._follows)
        return self._known

    def _catch_up(self, theirs: list[Callable[P, Any]]) -> None:
        old, now = list(self._known), []
        for call in theirs:
            handle = next((handle for handle in old if handle.call is call), None)
            if handle is not None:
                old.remove(handle)
            now.append(handle or Handle(self, call))
        for gone in old:
            gone._closed = True
        self._known = tuple(now)

    def add(self, call: Callable[P, Any], at: int | None = None) -> Handle:
        if not callable(call):
            raise TypeError(f"a callback is callable, {type(call).__name__} is not")
        handle = Handle(self, call)
        with _gate:
            if self._follows is not None:
                self._catch_up(self._follows)
            handles = list(self._known)
            index = len(handles) if at is None else at
            handles.insert(index, handle)
            self._known = tuple(handles)
            if self._follows is not None:
                self._follows.insert(index, call)
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
            known = list(self._known)
            index = known.index(handle)
            del known[index]
            self._known = tuple(known)
            theirs = self._follows
            if theirs is not None and index < len(theirs) and theirs[index] is handle.call:
                del theirs[index]
            return True


class LiveCalls(MutableSequence[Callable[..., Any]]):
    """A CallbackList as the list that PyTorch has in its place: what is done to the one is done to the other. A loop over it
    sees what was in it when the loop began."""

    def __init__(self, calls: CallbackList[...], changed: Callable[[], None] = lambda: None) -> None:
        self._calls = calls
        self._changed = changed  # called when something came or went

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter(self._calls.calls)

    def __getitem__(self, index: Any) -> Any:
        return self._calls.calls[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        now = self._calls.calls
        now[index] = value
        self.replace(now)

    def __delitem__(self, index: Any) -> None:
        handles = self._calls._handles[index]
        for handle in handles if isinstance(index, slice) else (handles,):
            handle.remove()
        self._changed()

    def insert(self, index: int, value: Callable[..., Any]) -> None:
        self._calls.add(value, index)
        self._changed()

    def append(self, value: Callable[..., Any]) -> None:
        self._calls.add(value)
        self._changed()

    def replace(self, calls: Iterable[Callable[..., Any]]) -> None:
        """These, and no others."""
        wanted = list(calls)
        self._calls.clear()
        for call in wanted:
            self._calls.add(call)
        self._changed()

    def __eq__(self, other: object) -> bool:
        return self._calls.calls == list(other) if isinstance(other, (list, LiveCalls)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._calls.calls)
