"""NCCL's source: what NCCL says of itself to its profiler plugin, as events of the process's.

    import ringmain, ringmain.nccl

    bus = ringmain.Bus.process()

    @bus.on("nccl.stalled")
    def stands(events):
        for event in events:
            print(event.group, event.func, event.reading, event.peer)

    source = ringmain.nccl.attach(bus)      # before the first communicator is made
    train()
    source.tell_stalled()                   # who waits for whom, now

Needs neither NCCL nor a GPU to be imported or attached. docs/nccl.md says what is heard, and what it costs.
"""

from __future__ import annotations

import os
import weakref
from types import TracebackType
from typing import Literal, NamedTuple

from . import _check, _nccl_library
from ._bus import Bus

__all__ = ["Counts", "Source", "attach", "plugin", "tell_stalled"]

_LANE_EVENTS, _STALL_SECONDS = (64, 1 << 20), (1, 86400)  # what the library takes: from, to
_KERNELS = {"when_heard": [], "always": ["kernel=always"], "never": ["kernel=never"]}
_DOORS = {"operations": [], "steps": ["door=steps"], "all": ["door=all"], "never": ["door=never"]}
_NAMED, _CHAIN = "NCCL_PROFILER_PLUGIN", "RINGMAIN_NCCL_CHAIN"

_library = _nccl_library.load()


class Counts(NamedTuple):
    """Since the process began: started = stopped + stale + aborted + those that are open. docs/nccl.md says what each is."""

    started: int
    stopped: int
    stale: int
    aborted: int
    published: int
    refused: int
    filtered: int
    no_room: int
    no_context: int
    unknown_types: int
    unknown_states: int
    stale_stops: int
    stale_states: int
    detached: int
    lost_starts: int
    suspect: int
    unfollowed: int


class Source:
    """The process's NCCL events on a bus, from attach() until detach(). A context manager.

    Threads: any. No method holds the GIL while it waits. A source that nobody holds any more is detached.
    """

    bus: Bus
    _source: int

    def __init__(self) -> None:
        raise TypeError("a source is made by ringmain.nccl.attach(bus)")

    @classmethod
    def _of(cls, bus: Bus, source: int) -> Source:
        made = cls.__new__(cls)
        made.bus, made._source = bus, source
        # At the interpreter's exit, too: then NCCL's threads find nobody to tell.
        weakref.finalize(made, _release, source, bus)
        return made

    def counts(self) -> Counts:
        """Of the process, whichever source it had."""
        return Counts(**_library.counts())

    def tell_stalled(self) -> int:
        """Says on nccl.stalled, with `asked`, each operation that is under way: where it is, and for whom it waits. How many.

        Operations are followed while somebody listens to nccl.stalled. Takes no lock; for hangs and people.
        """
        return _library.tell_stalled(self._source)

    def detach(self) -> _nccl_library.Detached:
        """After "done" nothing is being published, and nothing will be; NCCL is asked for nothing more. Waits for events that
        are being published.

        "deferred": called inside a subscriber; the rest ends later. "was_not_attached": an earlier call ended it.
        """
        return _library.detach(self._source)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.detach()

    def __repr__(self) -> str:
        return f"<NCCL's source on {self.bus!r}>"


def attach(bus: Bus | None = None, *, kernel_channels: Literal["when_heard", "always", "never"] = "when_heard",
           proxy_steps: bool = True, lane_events: int = 8192, stall_seconds: int = 60,
           door: Literal["operations", "steps", "all", "never"] = "operations", name_plugin: bool = True) -> Source:
    """Publishes NCCL's events on the bus (without one: on Bus.process()) from now on, also of communicators that are open.
    NCCL is asked only for what somebody listens to. A process has one source.

    NCCL loads the plugin that NCCL_PROFILER_PLUGIN names when its first communicator is made. `name_plugin` puts plugin() there,
    and what was there into RINGMAIN_NCCL_CHAIN, so that it comes behind; without it, or with a communicator from before, events
    come if the variable named it already. `kernel_channels`: "when_heard", and only where /dev/shm has room; "always", however
    full it is; "never". `proxy_steps`: also a slice through the network is an event. `lane_events`: how many events of one kind a
    thread may have on their way. `stall_seconds`: after how long without a word an operation is said to be stalled. `door`: what
    NCCL is asked for while the process has a door, so that `ringmain door stalled` can tell what hangs: operations with their
    proxies, the proxies' steps too, all with kernels' channels, or nothing.

    RuntimeError, in one sentence: there is a source already. ValueError: a number or word that cannot be.
    """
    if bus is None:
        bus = Bus.process()
    _check.instance("bus", bus, Bus, "a ringmain.Bus")
    if kernel_channels not in _KERNELS:
        raise ValueError(f"kernel_channels is {kernel_channels!r}; give one of {', '.join(_KERNELS)}")
    words = [*_KERNELS[kernel_channels], *([] if _check.flag("proxy_steps", proxy_steps) else ["steps=never"])]
    if door not in _DOORS:
        raise ValueError(f"door is {door!r}; give one of {', '.join(_DOORS)}")
    words += _DOORS[door]
    words.append(f"lane={_check.whole('lane_events', lane_events, *_LANE_EVENTS)}")
    words.append(f"stall={_check.whole('stall_seconds', stall_seconds, *_STALL_SECONDS)}")
    before = os.environ.get(_NAMED) if _check.flag("name_plugin", name_plugin) else plugin()
    source = Source._of(bus, _library.attach(bus._native, ",".join(words)))
    if before != plugin():
        if before is not None:
            os.environ[_CHAIN] = before
        os.environ[_NAMED] = plugin()
    return source


def plugin() -> str:
    """The whole path of the library that NCCL is to load."""
    return _library.plugin()


def tell_stalled() -> int:
    """As Source.tell_stalled(), of the process's source, whoever attached it, `ringmain run` say; 0 where there is none."""
    return _library.tell_stalled(None)


def _release(source: int, bus: Bus) -> None:
    """The bus is held until here."""
    _library.release(source)
