"""Did the GPU get there? Tickets on CUDA streams, of which each ends once."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple

from . import _check, _cuda_library, _cuda_tickets_library
from ._bus import Bus

_library = _cuda_tickets_library.load()
_ADDRESS = (0, (1 << 64) - 1)
_NS_MAX = (1 << 63) - 1


class Armed(NamedTuple):
    """What arm() answers. True where it was armed: then its ticket ends exactly once."""

    ticket: int  # above 0; later ones of a lane are larger
    code: _cuda_tickets_library.Code  # "armed", or why it was not
    result: int  # of the driver's
    launched: bool  # arm_after_launch(): the graph is on its way, whatever `code` says

    def __bool__(self) -> bool:
        return self.code == "armed"


class CompletionFigures(NamedTuple):
    """armed = completed + failed + abandoned + pending, at any time. While threads arm, each is right for some moment."""

    armed: int
    completed: int
    failed: int
    abandoned: int
    pending: int
    refused: int  # events that the bus did not take: closed, vetoed
    asked: int  # questions whether the context lives
    lanes: int  # that were taken at least once
    strategy: _cuda_tickets_library.Strategy  # the one that is used
    result: int  # what the context has met; 0: it lives
    arms: dict[_cuda_tickets_library.Code, int]  # answers of arm(), by code but for "armed"


class Completions:
    """Tickets of the calling thread's current CUDA context, of which there must be one. A context manager.

        bus.subscribe("cuda.completion", lambda ends: print([(end.tag, end.outcome) for end in ends]))
        with ringmain.cuda.Completions(bus) as completions:
            train_a_step()
            completions.arm(torch.cuda.current_stream(), tag=step)

    `strategy`: how the GPU's word comes; "automatic" is memory writes, or event queries where the device lacks them.
    `lanes`: streams, each as one thread arms it. `lane_tickets`: how many of a lane may be on their way. `capacity_events`:
    events on their way to subscribers. `spin_us`, `sleep_us_max`: while something is armed, how long to look for it without a
    pause, and how long a pause grows to. `watch_us`: how long nothing may move before the driver is asked whether the context
    lives. `end`: what is given to end() if nobody calls it, in seconds.

    Threads: any, at once. No method holds the GIL while it waits. Needs no source that is attached.

    RuntimeError, in one sentence with the remedy: no driver, or one older than CUDA 12.0's; no current context; the device
    lacks what `strategy` asks for; inside a callback. ValueError: a number that cannot be.
    """

    bus: Bus
    _completions: int

    def __init__(self, bus: Bus | None = None, *, strategy: _cuda_tickets_library.Strategy = "automatic", lanes: int = 1024,
                 lane_tickets: int = 256, capacity_events: int = 65536, spin_us: int = 20, sleep_us_max: int = 500,
                 watch_us: int = 1000, end: float = 2.0) -> None:
        if bus is None:
            bus = Bus.process()
        _check.instance("bus", bus, Bus, "a ringmain.Bus")
        if strategy not in _cuda_tickets_library.STRATEGIES:
            raise ValueError(f"strategy is {strategy!r}; give one of {', '.join(_cuda_tickets_library.STRATEGIES)}")
        numbers = (_cuda_tickets_library.STRATEGIES.index(strategy), _check.whole("lanes", lanes, 1, 65535),
                   _check.whole("lane_tickets", lane_tickets, 2, 1 << 20),
                   _check.whole("capacity_events", capacity_events, 1, 1 << 24), _check.whole("spin_us", spin_us, 0, _NS_MAX),
                   _check.whole("sleep_us_max", sleep_us_max, 1, 1_000_000), _check.whole("watch_us", watch_us, 1, 60_000_000),
                   max(0, _nanoseconds(end)))
        self.bus = bus
        self._completions = _library.make(bus._native, numbers)
        # At the interpreter's exit, too: then what is on its way is abandoned.
        weakref.finalize(self, _release, self._completions, bus)

    def arm(self, stream: Any = 0, tag: int = 0) -> Armed:
        """What is on the stream now must be done before the ticket completes. `stream`: a torch.cuda.Stream, what has
        `__cuda_stream__()` or `ptr`, or a handle as an int, of which 0 is the legacy default stream."""
        return Armed(*_library.arm(self._completions, _handle(stream), _check.whole("tag", tag, *_ADDRESS)), False)

    def arm_after_launch(self, graph: int, stream: Any = 0, tag: int = 0) -> Armed:
        """Launches an executable graph (its cudaGraphExec_t as an int), and arms behind it. What can be refused is refused
        before the launch."""
        return Armed(*_library.arm_after_launch(self._completions, _check.whole("graph", graph, 1, _ADDRESS[1]), _handle(stream),
                                                _check.whole("tag", tag, *_ADDRESS)))

    def add_host_node(self, graph: int, dependencies: Iterable[int] = (), tag: int = 0) -> int:
        """The node (a cudaGraphNode_t as an int) that was added to the cudaGraph_t: each launch of it is one ticket. It is
        the process's for ever, as graphs may be copied. RuntimeError: there are 65,536 of them, or the driver refused."""
        nodes = tuple(_check.whole("a dependency", node, 1, _ADDRESS[1]) for node in dependencies)
        return _library.add_host_node(self._completions, _check.whole("graph", graph, 1, _ADDRESS[1]), nodes,
                                      _check.whole("tag", tag, *_ADDRESS))[0]

    def end(self, timeout: float | None = 2.0) -> _cuda_library.Detached:
        """No ticket is given from now on; those on their way are waited for, `None`: for ever, then abandoned.

        "done": each ticket has had its event. "timeout": the driver, or a subscriber, holds the thread up that looks. "deferred":
        inside a callback, where it does not wait. "was_not_attached": an earlier call ended it, or in a forked child.
        """
        return _library.end(self._completions, -1 if timeout is None else max(0, _nanoseconds(timeout)))

    def figures(self) -> CompletionFigures:
        """After end() they are final."""
        found, arms = _library.figures(self._completions)
        strategy = _cuda_tickets_library.STRATEGIES[found.pop("strategy")]
        return CompletionFigures(strategy=strategy, arms=arms, **found)

    def __enter__(self) -> Completions:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.end()

    def __repr__(self) -> str:
        now = self.figures()
        return f"<completions on {self.bus!r}: {now.armed} armed, {now.pending} pending, by {now.strategy}>"


def _handle(stream: Any) -> int:
    for name in ("cuda_stream", "ptr"):
        found = getattr(stream, name, None)
        if isinstance(found, int):
            return found
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        found = protocol() if callable(protocol) else protocol
        return _check.whole("stream", found[1], *_ADDRESS)
    if isinstance(stream, bool):
        raise TypeError(f"stream is {stream!r}; give a CUDA stream, or its handle as an int")
    try:
        return _check.whole("stream", stream, *_ADDRESS)
    except TypeError:
        raise TypeError(f"stream is {stream!r}; give a CUDA stream, or its handle as an int") from None


def _nanoseconds(timeout: float) -> int:
    found = _check.seconds(timeout)
    return _NS_MAX if found is None or found >= _NS_MAX / 1e9 else int(max(found, 0.0) * 1e9)


def _release(completions: int, bus: Bus) -> None:
    """The bus is held until here."""
    _library.release(completions)
