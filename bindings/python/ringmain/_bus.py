"""The bus, its channels and its subscriptions."""

from __future__ import annotations

import inspect
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from . import _check, _native, _recording, events
from ._channel import Channel
from ._mailbox import Mailbox
from ._recording import Recording
from ._steps import StepFollow
from ._stats import Stats, SubscriberStats
from ._types import EventType, check_name, check_pattern, declared, event_type_of, newest_of

Hear = Callable[[_native.Batch], object]
Judge = Callable[[_native.Record], "bool | str | None"]


def in_subscriber() -> bool:
    """Is this thread inside a subscriber of any bus: a callback of Python's, C's or C++'s, a judge, or a sink?"""
    return _native.in_subscriber()


class Subscription:
    """Keeps one callback attached, until remove() or the end of its bus. Calling it calls the callback."""

    def __init__(self, bus: Bus, native: _native.QueuedSubscriber | _native.InlineSubscriber,
                 callback: Callable[..., Any]) -> None:
        self._bus = bus
        self._native = native
        self.callback = callback

    @property
    def name(self) -> str:
        return self._native.name

    @property
    def attached(self) -> bool:
        return not self._native.closed and not self._bus.closed

    @property
    def raised(self) -> int:
        """How often the callback raised. The logger "ringmain" has the first time."""
        return self._native.raised

    def stats(self) -> SubscriberStats:
        if isinstance(self._native, _native.InlineSubscriber):
            return SubscriberStats(**self._native.stats(), name=self.name, inline=True)
        return SubscriberStats(**self._bus._native.subscriber_stats(self._native), name=self.name)

    def remove(self, timeout: float | None = None) -> str:
        """After "done", no call to the callback is running, or will start. Waits for a running one without the GIL.

        "deferred": called inside a callback; the subscription is closed at once, and ends after the running call.
        "timeout": it is closed, but a call is still running; ask again. "was_not_attached": it had ended before. The
        caller must hold no lock that the callback wants.
        """
        limit = _check.seconds(timeout)
        if isinstance(self._native, _native.InlineSubscriber):
            told = self._bus._native.remove_inline(self._native, limit)
        else:
            told = self._bus._native.remove(self._native, limit)
        self._bus._drop_ended()
        return told

    def __call__(self, *arguments: Any) -> Any:
        return self.callback(*arguments)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.remove()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subscription) and other._native is self._native

    def __hash__(self) -> int:
        return hash(id(self._native))

    def __repr__(self) -> str:
        return f"<subscription {self.name!r}{'' if self.attached else ', ended'}>"


class Bus:
    """A set of channels, the workers that drain them, and the thread that calls Python back.

    `Bus.process()` is the one that the whole process shares; `Bus()` is a bus of your own, for tests or apart from
    others: close() it, or use `with`. Threads: everything may be called from any thread.
    """

    _of_process: Bus | None = None

    def __init__(self, name: str = "ringmain", *, workers: int = 0, linger_ms: float = 250.0) -> None:
        own = _native.NativeBus(_check.text("name", name), _check.whole("workers", workers, 0, 32))
        own.linger_ms = _check.milliseconds("linger_ms", linger_ms)
        self._begin(own, name)

    def _begin(self, native: _native.NativeBus, name: str) -> None:
        self.name = name
        self._native = native
        # What a training loop calls most: functions of C, without this class's own call in front of them, unless a
        # subclass has its own.
        if type(self).publish is Bus.publish:
            self.publish = native.publish_function()  # type: ignore[method-assign]
        self._step = _native.step_function(native, threading.local())
        if type(self).step is Bus.step:
            self.step = self._step  # type: ignore[method-assign]
        self._heard: list[_Heard] = []
        self._mailboxes: weakref.WeakSet[Mailbox] = weakref.WeakSet()
        self._recordings: list[Recording] = []

    @classmethod
    def process(cls) -> Bus:
        """The bus of this process, which all its libraries share. It is never stopped: close() ends what Python
        subscribed. In a forked child it is still the parent's, and publishing there answers "forked"."""
        found = Bus._of_process
        if found is None or (found.closed and not found.forked):
            found = Bus.__new__(Bus)
            found._begin(_native.NativeBus.process(), "process")
            Bus._of_process = found
        return found

    # --- publish ---

    def channel(self, what: str | type | EventType, *, dtype: np.dtype[Any] | None = None) -> Channel:
        """The channel of an event type; of a name that is in use, or that ringmain describes; or of a name and a
        structured dtype. ValueError: it holds another type; KeyError: nobody has described what it holds."""
        if isinstance(what, type):
            return Channel(self._native.channel(_layout_of_class(what)))
        if dtype is not None:
            if not isinstance(what, str):
                raise TypeError("a dtype goes with a name; an event type has its own fields")
            what = EventType.of(what, np.dtype(dtype))
        if isinstance(what, EventType):
            return Channel(self._native.channel(what._layout))
        return Channel(_find_channel(self._native, what))

    def publish(self, event: Any, /, **fields: Any) -> _native.PublishResult:
        """Publishes an event: an instance of an @event class, or an event type or channel's name with its fields."""
        return self._native.publish_function()(event, **fields)

    # --- subscribe ---

    def subscribe(self, what: str | type | EventType | Channel, callback: Hear, *, name: str = "",
                  queue_events: int = 65536, overflow: str = "drop_newest", priority: int = 0,
                  on_raise: str = "keep") -> Subscription:
        """Calls `callback(batch)` on the bus's dispatcher thread, one call at a time.

        `what`: an event type, a channel, or a pattern over present and future channels: "cuda.*" (one token),
        "compile.>" (the rest). `queue_events` may wait for the callback per channel; `overflow` ("drop_newest",
        "drop_oldest") says which are lost then. `on_raise`: "keep", or "detach" when it raises the first time.

        A `name` that is given stands for one subscription to `what`: a new one with that name replaces it. In a
        notebook or at a prompt a function's own name does the same, so that a cell may be run again.
        """
        check_callback(callback)
        if on_raise not in ("keep", "detach"):
            raise ValueError(f"on_raise is {on_raise!r}; use 'keep' or 'detach'")
        asked = _asked(name or name_of(callback), overflow, queue_events, priority)
        wanted = self._wanted(what)
        key = _key_of(name, what, callback)
        self._replace(key)
        native = self._native.subscribe(wanted, callback, asked, on_raise == "detach")
        self._heard.append(_Heard(native, callback, key))
        return Subscription(self, native, callback)

    def on(self, what: str | type | EventType | Channel, **options: Any) -> Callable[[Hear], Subscription]:
        """subscribe() as a decorator: the function becomes its Subscription."""
        return lambda callback: self.subscribe(what, callback, **options)

    def subscribe_inline(self, what: str | type | EventType | Channel, callback: Judge, *, name: str = "",
                         priority: int = 0, on_raise: str = "allow") -> Subscription:
        """Calls `callback(record)` in the publishing thread, before the event is queued.

        None or True lets the event go on; False or a reason (str) vetoes it. The publishing thread takes the GIL for
        the call, even if it is a C++ thread that has never run Python, and waits until it gets it: not for hot paths.
        `on_raise`: "allow", "veto", or "detach" when it raises the first time. One channel, no pattern.
        """
        check_callback(callback)
        channel = what if isinstance(what, Channel) else self.channel(what)
        asked = _asked(name or name_of(callback), "drop_newest", 65536, priority)
        key = _key_of(name, channel, callback, "inline")
        self._replace(key)
        native = self._native.subscribe_inline(channel._native, callback, asked, _check.text("on_raise", on_raise))
        self._heard.append(_Heard(native, callback, key))
        return Subscription(self, native, callback)

    def subscriptions(self) -> list[Subscription]:
        """The subscriptions that are attached, in their order: also those of cells whose result was not kept."""
        self._drop_ended()
        return [Subscription(self, heard.native, heard.callback) for heard in self._heard]

    def _drop_ended(self) -> None:
        self._heard = [heard for heard in self._heard if not heard.native.closed and not self.closed]

    def _replace(self, key: tuple[str, ...] | None) -> None:
        for heard in list(self._heard) if key is not None else ():
            if heard.key == key:
                Subscription(self, heard.native, heard.callback).remove()

    def mailbox(self, what: str | type | EventType | Channel, *, name: str = "", queue_events: int = 65536,
                overflow: str = "drop_newest") -> Mailbox:
        """A queue that the caller drains: `async for batch in bus.mailbox("train.*")`."""
        asked = _asked(name, overflow, queue_events, 0)
        made = Mailbox(self._native.mailbox(wanted := self._wanted(what), asked), wanted)
        self._mailboxes.add(made)
        return made

    def _wanted(self, what: str | type | EventType | Channel) -> str | _native.Channel:
        if isinstance(what, str):
            check_pattern(what)
            return what
        if isinstance(what, Channel):
            return what._native
        if not isinstance(what, (type, EventType)):
            raise TypeError(f"one hears a name or pattern, an event class, an event type or a channel, and not {what!r}")
        return self.channel(what)._native

    # --- steps ---

    def step(self, number: int | None = None, *, phase: str | None = None,
             micro_batch: int | None = None) -> _native.StepScope:
        """Publishes on `train.step` that a step begins here and ends with the scope: `with bus.step(7, phase="forward")`.

        Without a number it is a phase or micro-batch of the step that is open in this thread. Scopes end in the thread
        that began them, and with one those that began inside it. As a decorator it makes each call of the function a scope.
        """
        return self._step(number, phase=phase, micro_batch=micro_batch)

    def follow_steps(self) -> StepFollow:
        """Tells in which step an event was published: open it before the steps begin."""
        return StepFollow(_native.follow_steps(self._native), self.name)

    # --- the flight recorder ---

    def record(self, patterns: str | Iterable[str], *, folder: str | os.PathLike[str] | None = None, file_bytes: int = 8 << 20,
               ring_bytes: int = 64 << 10, files_kept: int | None = 16) -> Recording:
        """Leaves what is published on all channels that match one of the patterns, present and future, in a file that outlives the
        process: `bus.record("collective.>,train.*")`; `ringmain post-mortem` reads it. Also which collectives are open.

        It goes on until reset(), or the end of this bus. `folder`: None for RINGMAIN_FLIGHT_DIR, else the user's runtime folder, else
        /dev/shm. `ring_bytes`, a power of two from 4 KiB, is for each thread and pattern, `file_bytes`, from 1 MiB, for all.
        `files_kept`: of dead processes in the folder; None: all. RuntimeWarning: no file can be had, and the record is in memory only.
        ValueError: patterns that can match no name, wrong sizes, a bus with four recordings, or a forked child, which has to make
        a Bus of its own.
        """
        made = _recording.begin(self._native, patterns, folder, file_bytes, ring_bytes, files_kept)
        self._recordings = [*self.recordings(), made]
        return made

    def recordings(self) -> list[Recording]:
        """Those that record() began here and that go on."""
        return [recording for recording in self._recordings if recording.recording]

    # --- figures, and the end ---

    def channel_names(self) -> list[str]:
        return self._native.channel_names()

    def stats(self) -> Stats:
        return Stats.of(self._native.stats())

    def flush(self, timeout: float | None = None) -> bool:
        """Waits, without the GIL, until all that was published before has been heard, in Python too. False: time
        ran out, or called inside a callback, which would wait for itself."""
        return self._native.flush(_check.seconds(timeout))

    def close(self, timeout: float | None = 5.0) -> bool:
        """Delivers what was accepted, and ends this bus; of the process's bus, only what Python subscribed and records.
        False: not within `timeout` seconds."""
        in_time = self._native.close(_check.seconds(timeout))
        self._heard.clear()
        for recording in self._recordings:
            recording.reset()
        for mailbox in list(self._mailboxes):
            mailbox.close()
        return in_time

    stop = close

    @property
    def closed(self) -> bool:
        return self._native.closed

    @property
    def linger_ms(self) -> float:
        """For how long callbacks rest after a turn of few events, so that events that come one by one are heard together.
        An event after a rest is heard at once, one during a rest at most that much later; flush() and close() end a
        rest. 0: each event is heard as soon as it comes, at the price of a wake-up of two threads."""
        return self._native.linger_ms

    @linger_ms.setter
    def linger_ms(self, ms: float) -> None:
        self._native.linger_ms = _check.milliseconds("linger_ms", ms)

    @property
    def forked(self) -> bool:
        """This process is a forked child, and the bus is its parent's: nothing is published or heard on it."""
        return self._native.forked

    def __repr__(self) -> str:
        return f"<bus {self.name!r}{', closed' if self.closed else ''}>"

    def _repr_html_(self) -> str:
        """For notebooks; ringmain.notebook.show() is one that updates itself."""
        from .notebook import Live

        return Live(self)._repr_html_()

    def __enter__(self) -> Bus:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()


def _layout_of_class(what: type) -> _native.Layout:
    found = event_type_of(what)
    if found is None:
        raise TypeError(f"{what.__name__} is no event; put @ringmain.event('its.name') on it")
    return found._layout


def _layout_of(event: object) -> _native.Layout:
    """The event type of what bus.publish() is given, if that is neither a name nor an event."""
    if isinstance(event, EventType):
        return event._layout
    if isinstance(event, type):
        raise TypeError(f"{event.__name__} is a class; publish an event of it, as in bus.publish({event.__name__}(…))")
    return _layout_of_class(type(event))


def _find_channel(bus: _native.NativeBus, name: str) -> _native.Channel:
    """The channel that holds what the name stands for."""
    if not isinstance(name, str):
        raise TypeError(f"a channel is named by a str, an event class or an event type, and not by {name!r}")
    newest = newest_of(name)
    if newest is not None:
        return bus.channel(newest)
    found = bus.find(name)
    if found is not None:
        return found
    described = events.all_events[name]._layout if name in events.all_events else declared(name)
    if described is not None:
        return bus.channel(described)
    check_name(name)
    raise KeyError(f"no channel {name!r} yet: nobody has said what it holds; give its dtype or its event type, or "
                   "subscribe by name, which waits for it")


def check_callback(callback: object) -> None:
    if not callable(callback):
        raise TypeError(f"{callback!r} cannot be called")
    if inspect.iscoroutinefunction(callback):
        raise TypeError(f"{callback!r} is a coroutine function, which a thread cannot await; use "
                        "`async for batch in bus.mailbox(…)`")


class _Heard(NamedTuple):
    native: _native.QueuedSubscriber | _native.InlineSubscriber
    callback: Callable[..., Any]
    key: tuple[str, ...] | None  # another of the same key replaces it


def _key_of(name: str, what: object, callback: object, *more: str) -> tuple[str, ...] | None:
    heard = what.__qualname__ if isinstance(what, type) else what if isinstance(what, str) else getattr(what, "name", "")
    if name:
        return name, heard, *more
    code = getattr(callback, "__code__", None)
    own = str(getattr(callback, "__qualname__", "<"))
    if code is None or "<" in own:  # a lambda, or a function inside of one, is another each time
        return None
    of_a_cell = code.co_filename.startswith(("<ipython-input", "<stdin>", "<python-input")) or "ipykernel_" in code.co_filename
    return (own, heard, "cell", *more) if of_a_cell else None


def _asked(name: str, overflow: str, queue_events: int, priority: int) -> _native.Asked:
    return _native.Asked(_check.text("name", name), _check.text("overflow", overflow),
                         _check.whole("queue_events", queue_events, 1, 2**32 - 1),
                         _check.whole("priority", priority, -(2**31), 2**31 - 1))


def name_of(callback: object) -> str:
    return str(getattr(callback, "__qualname__", None) or type(callback).__qualname__)
