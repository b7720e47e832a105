"""CUDA's source: the process's CUDA calls as events, whoever makes them.

    import ringmain, ringmain.cuda

    bus = ringmain.Bus.process()

    @bus.on("cuda.memory_allocation")
    def seen(events):
        for event in events:
            print(events.channel, event.api, event.result, event.stamp.time_ns)

    with ringmain.cuda.attach(bus) as source:
        train()
    print(source.counts())

Needs a driver and CUPTI when attach() is called, and neither to be imported. docs/cuda.md says what is heard.
Completions says once, of each point of a stream that is asked about, that the GPU got there, or why it never will.
"""

from __future__ import annotations

import logging
import sys
import weakref
from types import TracebackType
from typing import NamedTuple

from . import _check, _cuda_library
from ._bus import Bus
from ._cuda_completions import Armed, CompletionFigures, Completions

__all__ = ["Armed", "CompletionFigures", "Completions", "Counts", "Source", "attach"]

_LANE_EVENTS, _HANDLES = (64, 1 << 20), (1024, 1 << 24)  # what the library takes: from, to

_library = _cuda_library.load()
_log = logging.getLogger("ringmain")


class Counts(NamedTuple):
    """What a source has done since it was attached. While calls go on, each figure is right for some moment."""

    published: int  # events that the bus accepted
    refused: int  # events that it did not: full, no memory, closed, vetoed
    suppressed: int  # calls from within subscribers' callbacks
    unkept: int  # handles for which there was no room: their generation reads 0


class Source:
    """The process's CUDA calls on a bus, from attach() until detach(). A context manager.

    Threads: any. No method holds the GIL while it waits. A source that nobody holds any more is detached.
    """

    bus: Bus
    _source: int

    def __init__(self) -> None:
        raise TypeError("a source is made by ringmain.cuda.attach(bus)")

    @classmethod
    def _of(cls, bus: Bus, source: int) -> Source:
        made = cls.__new__(cls)
        made.bus, made._source = bus, source
        # At the interpreter's exit, too: then calls of CUDA's threads find nobody to tell.
        weakref.finalize(made, _release, source, bus)
        return made

    @property
    def state(self) -> _cuda_library.State:
        """"attached", "lent", "lost" (another tool has ended CUPTI) or "detached"; never "unavailable"."""
        return _library.state_of(self._source)

    def counts(self) -> Counts:
        """After detach() they are final."""
        return Counts(**_library.counts(self._source))

    def detach(self) -> _cuda_library.Detached:
        """After "done" no call is being published, and none will be. Waits for calls whose events are being published.

        "deferred": called inside a subscriber, or in a CUDA call; what begins from then on is not published, and the rest
        ends later. "was_not_attached": an earlier call ended it.
        """
        return _library.detach(self._source)

    def lend(self, to: str) -> bool:
        """Lets go of CUPTI for another tool, which cuda.source names, until take_back(). False: there was nothing to let go
        of. RuntimeError: it was attached with hold, or this is called inside a subscriber."""
        return _library.lend_source(self._source, _check.text("to", to))

    def take_back(self) -> bool:
        """False: CUPTI is taken still, or was not lent. Ask again later."""
        return _library.take_back_source(self._source)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.detach()

    def __repr__(self) -> str:
        return f"<CUDA's source on {self.bus!r}: {self.state}>"


def attach(bus: Bus | None = None, *, hold: bool = False, own: bool = False, driver_only: bool = False,
           wrapped_only: bool = False, lossless: bool = False, lane_events: int = 8192, handles: int = 65536,
           cupti: str = "") -> Source:
    """Publishes the process's CUDA calls on the bus (without one: on Bus.process()) from now on; only what somebody
    listens to is asked of CUPTI. A process has one source.

    `hold`: it never lends CUPTI, so that torch.profiler may record nothing of the GPU. `own`: calls that subscribers make are
    published, too. `driver_only`: the driver's calls only, among them those that the runtime makes. `wrapped_only`: CUPTI is
    left alone; what C++ calls through `traced.hpp` is all that is published. `lossless`: a call waits until there is room for
    its event. `lane_events`: how many events of one kind a thread may have on their way. `handles`: how many live events,
    streams and allocations keep their generation and bytes. `cupti`: libcupti's whole path; without one it is looked for.

    RuntimeError, in one sentence with the remedy: no driver, no CUPTI, CUPTI's place is taken, there is a source already.
    ValueError: a number or path that cannot be.
    """
    if bus is None:
        bus = Bus.process()
    _check.instance("bus", bus, Bus, "a ringmain.Bus")
    words = [word for word, wanted in (("hold", hold), ("own", own), ("driver", driver_only),
                                       ("wrapped", wrapped_only), ("lossless", lossless))
             if _check.flag(word, wanted)]
    words.append(f"lane={_check.whole('lane_events', lane_events, *_LANE_EVENTS)}")
    words.append(f"handles={_check.whole('handles', handles, *_HANDLES)}")
    if _check.text("cupti", cupti):
        if "," in cupti or "\0" in cupti:
            raise ValueError(f"cupti is {cupti!r}; give a path without a comma")
        if not cupti.startswith("/") or cupti.endswith("/"):
            raise ValueError(f"cupti is {cupti!r}; give the library's whole path, such as /usr/local/cuda/lib64/libcupti.so.13")
        words.append(f"cupti={cupti}")
    source = Source._of(bus, _library.attach(bus._native, ",".join(words)))
    _step_aside()
    return source


def _release(source: int, bus: Bus) -> None:
    """The bus is held until here."""
    _library.release(source)


def _step_aside() -> None:
    """For torch.profiler, if PyTorch is here; if it comes later, its extension entry point does this."""
    if "torch" not in sys.modules:
        return
    try:
        from .torch._run import beside_cuda

        beside_cuda()
    except Exception:  # a PyTorch that is broken, or half imported
        _log.debug("CUDA's source does not step aside for torch.profiler", exc_info=True)
