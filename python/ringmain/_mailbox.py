"""A queue that its owner drains: in a loop of his own, or by `async for`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from types import TracebackType

from . import _native
from ._stats import SubscriberStats


class Mailbox:
    """Batches as they come. Threads: one at a time. It may outlive its bus, and then ends."""

    def __init__(self, native: _native.Mailbox) -> None:
        self._native = native
        self._waiting: asyncio.Future[None] | None = None

    def take(self, events_max: int = 2048) -> _native.Batch | None:
        """The next run of at most so many events, or None."""
        return self._native.take(events_max)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits, without the GIL, until an event is there. False: time ran out, or it was closed."""
        return self._native.wait(timeout)

    def fileno(self) -> int:
        """A descriptor that polls readable while events are there: for select and event loops."""
        return self._native.fileno()

    @property
    def closed(self) -> bool:
        return self._native.closed

    def stats(self) -> SubscriberStats:
        return SubscriberStats(**self._native.stats())

    def close(self) -> None:
        """Detaches; what is still inside is dropped. Who waits for it goes on."""
        self._native.close()
        waiting = self._waiting
        if waiting is not None:
            waiting.get_loop().call_soon_threadsafe(_wake, waiting)

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
            self._waiting = loop.create_future()
            descriptor = self.fileno()
            loop.add_reader(descriptor, _wake, self._waiting)
            try:
                await self._waiting
            finally:
                self._waiting = None
                loop.remove_reader(descriptor)

    def __enter__(self) -> Mailbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
