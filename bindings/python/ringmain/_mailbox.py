"""A queue that its owner drains: in a loop of its own, or by `async for`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import NamedTuple

from . import _check, _native
from ._stats import SubscriberStats


class _Waiting(NamedTuple):
    """The tasks of one event loop that wait for a mailbox."""

    descriptor: int
    futures: set[asyncio.Future[None]]


class Mailbox:
    """Batches as they come. Threads: one at a time; in asyncio any number of `async for`, and each batch goes to one of
    them. A mailbox may outlive its bus, and then ends."""

    def __init__(self, native: _native.Mailbox, of: str | _native.Channel) -> None:
        self._native = native
        self._of = repr(of) if isinstance(of, str) else of.name
        self._lock = threading.Lock()
        self._waiting: dict[asyncio.AbstractEventLoop, _Waiting] = {}

    def take(self, events_max: int = 2048) -> _native.Batch | None:
        """The next run of at most `events_max` events, or None."""
        return self._native.take(_check.whole("events_max", events_max, 1, 2**32 - 1))

    def wait(self, timeout: float | None = None) -> bool:
        """Waits, without the GIL, until an event is there. False: time ran out, or the mailbox was closed."""
        return self._native.wait(_check.seconds(timeout))

    def fileno(self) -> int:
        """A descriptor that polls readable while events are there: for select and event loops."""
        return self._native.fileno()

    @property
    def closed(self) -> bool:
        return self._native.closed

    def stats(self) -> SubscriberStats:
        return SubscriberStats(**self._native.stats())

    def close(self) -> None:
        """Detaches; what is still inside is dropped. Threads and tasks that wait for it go on."""
        with self._lock:
            self._native.close()
            waiting = list(self._waiting)
        for loop in waiting:
            with contextlib.suppress(RuntimeError):  # that loop was closed, and nobody waits in it
                loop.call_soon_threadsafe(self._wake_all, loop)

    def __repr__(self) -> str:
        return f"<mailbox of {self._of}{', closed' if self.closed else ''}>"

    def __iter__(self) -> Iterator[_native.Batch]:
        """What is there now, batch by batch."""
        while (batch := self.take()) is not None:
            yield batch

    def __aiter__(self) -> AsyncIterator[_native.Batch]:
        return self._batches()

    async def _batches(self) -> AsyncIterator[_native.Batch]:
        loop = asyncio.get_running_loop()
        while not self.closed:
            batch = self.take()
            if batch is not None:
                yield batch
                continue
            waiting = self._begin_waiting(loop)
            if waiting is None:
                return
            try:
                await waiting
            finally:
                self._end_waiting(loop, waiting)

    def _begin_waiting(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None] | None:
        """None: the mailbox was closed. A loop has one reader for a descriptor, so all that wait in a loop share it; the
        descriptor is a copy of our own, which close() does not close while the loop uses it."""
        with self._lock:
            if self.closed:
                return None
            found = self._waiting.get(loop)
            if found is None:
                found = self._waiting[loop] = _Waiting(os.dup(self.fileno()), set())
                loop.add_reader(found.descriptor, self._wake_all, loop)
            waiting: asyncio.Future[None] = loop.create_future()
            found.futures.add(waiting)
            return waiting

    def _end_waiting(self, loop: asyncio.AbstractEventLoop, waiting: asyncio.Future[None]) -> None:
        with self._lock:
            found = self._waiting[loop]
            found.futures.discard(waiting)
            if not found.futures:
                del self._waiting[loop]
                loop.remove_reader(found.descriptor)
                os.close(found.descriptor)

    def _wake_all(self, loop: asyncio.AbstractEventLoop) -> None:
        found = self._waiting.get(loop)
        for waiting in list(found.futures) if found is not None else ():
            if not waiting.done():
                waiting.set_result(None)

    def __enter__(self) -> Mailbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()
