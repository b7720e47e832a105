"""Which process groups are there, and which numbers of theirs are accounted for?

PyTorch numbers what a group is called for. Of each number we know whether a method of ours saw it, in which thread, so that
PyTorch's recorder, which saw all of them, adds only what C++ called for.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ..comms._flight import timeout_of
from ._collectives import Collectives
from ._collectives import Group as Reporter

_SPANS_MAX = 8192  # more than PyTorch's recorder remembers
ENDS_KNOWN = ("gloo", "mpi")  # by the future of a Work. ProcessGroupNCCL's is done when the work is enqueued (pytorch#48561)


class _Begun:
    """A method that a thread is inside of."""

    __slots__ = ("before", "of_others")

    def __init__(self, before: int) -> None:
        self.before = before  # the last number that was given
        self.of_others = 0  # numbers since then that went to what hooks called for


class ProcessGroup:
    """One of PyTorch's. It does not keep it alive."""

    def __init__(self, group: Any, reporter: Reporter, backend: str, backends: dict[str, str]) -> None:
        self.torch_group: Callable[[], Any] = weakref.ref(group)
        self.name = str(group.group_name)
        self.reporter = reporter
        self.backend = backend
        self._backends = backends
        self.counts = True  # the backend numbers what it is called for
        self.counts_point_to_point = backend == "gloo"
        self.operations = 0
        self._collectives = 0
        self.point_to_point = 0  # of its numbers, those that are no collective's
        self.begun: dict[int, list[_Begun]] = {}  # thread: the methods that it is inside of, the outermost first
        self.spans: deque[list[int]] = deque(maxlen=_SPANS_MAX)  # first and last number of methods in a row, and their thread
        self.said_by_methods = 0
        self.known = self.first = self.number()  # up to here the recorder's entries are accounted for
        self.told = 0  # that the recorder added, or had lost
        self.forget: Callable[[], Any] = lambda: None  # from then on PyTorch's group holds nothing of ours

    def number(self) -> int:
        """The last that was given. 0: this backend does not count."""
        group = self.torch_group() if self.counts else None
        try:
            return int(group._get_sequence_number_for_group()) if group is not None else 0
        except RuntimeError:
            self.counts = False
            return 0

    def sequence(self, before: int, point_to_point: bool) -> int:
        """Of an operation that is called for after this number."""
        if point_to_point:
            return 0
        self._collectives += 1
        return before + 1 - self.point_to_point if self.counts else self._collectives

    def backend_of(self, device_type: str) -> str:
        return self._backends.get(device_type, self.backend)

    def begin(self) -> int:
        """Before a method is called. Returns the last number that was given."""
        last = self.number()
        self.begun.setdefault(threading.get_ident(), []).append(_Begun(last))
        return last

    def over(self, before: int, point_to_point: bool) -> None:
        """After it. What it took in numbers is its own, but for what its hooks called for."""
        last, thread = self.number(), threading.get_ident()
        inside = self.begun[thread]
        own = max(last - before - inside[-1].of_others, 0)
        self.said_by_methods += own
        if point_to_point:
            self.point_to_point += own
        if len(inside) > 1:
            inside.pop()
            inside[-1].of_others += last - before
            return
        if last > before:
            latest = self.spans[-1] if self.spans else None
            if latest is not None and latest[2] == thread and latest[1] == before:
                latest[1] = last
            else:
                self.spans.append([before + 1, last, thread])
        del self.begun[thread]

    def seen(self, number: int, thread: int | None) -> bool:
        """Whether a method of ours was called for it. `thread`: which called for it; None: not known."""
        for first, last, by in reversed(list(self.spans)):
            if first <= number <= last and thread in (by, None):
                return True
        return any(number > inside[0].before and thread in (by, None) for by, inside in list(self.begun.items()))

    def forget_spans(self) -> None:
        """Those of which the recorder's entries have come."""
        while self.spans and self.spans[0][1] <= self.known:
            self.spans.popleft()

    def unseen(self) -> bool:
        """Whether there may be numbers that no method of ours saw, and no entry of the recorder. A method that is under way
        takes one of them: to read the recorder for it costs more than what it is about."""
        inside = len(self.begun)
        missing = self.number() - self.first - self.said_by_methods - self.told
        return missing > max(inside, len(self.begun))  # looked at twice: one may begin or be over meanwhile


class Groups:
    """Those that are known. Made when they are registered, or at their first use."""

    def __init__(self, collectives: Collectives, failed: Callable[[BaseException], None],
                 made: Callable[[ProcessGroup, Any], None] = lambda known, group: None) -> None:
        self._collectives = collectives
        self._failed = failed
        self._made = made
        self._lock = threading.RLock()
        self._known: dict[int, ProcessGroup] = {}

    def of(self, group: Any) -> ProcessGroup:
        found = self._known.get(id(group))
        return found if found is not None and found.torch_group() is group else self._add(group)

    def named(self, name: str) -> ProcessGroup | None:
        return next((known for known in self if known.name == name), None)

    def __iter__(self) -> Iterator[ProcessGroup]:
        return iter(list(self._known.values()))

    def __len__(self) -> int:
        return len(self._known)

    def end(self, name: str | None = None, reason: str = "the process group was destroyed") -> None:
        """That of this name; without one: all."""
        with self._lock:
            gone = [key for key, known in self._known.items() if name is None or known.name == name]
            ended = [self._known.pop(key) for key in gone]
        for known in ended:
            known.forget()
            known.reporter.end(reason, known.operations)

    def leave(self) -> None:
        """We hear of none any more. What is open goes on, and its future says its end."""
        with self._lock:
            left = list(self._known.values())
            self._known.clear()
        for known in left:
            known.forget()
            known.reporter.end("PyTorch is not listened to any more", known.operations, False)

    def _add(self, group: Any) -> ProcessGroup:
        key = id(group)
        with self._lock:
            found = self._known.get(key)
            if found is not None and found.torch_group() is group:
                return found
            backend, backends = backends_of(group)
            reporter = self._collectives.group(str(group.group_name), str(group.group_desc), backend, group.rank(), group.size(),
                                               ranks_of(group), timeout_of(group) or 0.0)
            known = self._known[key] = ProcessGroup(group, reporter, backend, backends)
            gone = weakref.finalize(group, self._gone, key, known)
            gone.atexit = False
            known.forget = gone.detach
        self._made(known, group)
        return known

    def _gone(self, key: int, known: ProcessGroup) -> None:
        try:
            with self._lock:
                if self._known.get(key) is not known:
                    return
                del self._known[key]
            known.reporter.end("nobody holds the process group any more", known.operations)
        except Exception as error:
            self._failed(error)


def world() -> Any:
    """PyTorch's own book of groups."""
    return getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)


def backends_of(group: Any) -> tuple[str, dict[str, str]]:
    """The backend's name, and that for each type of device: "cpu:gloo,cuda:nccl"."""
    written = str(getattr(world(), "pg_backend_config", {}).get(group, ""))
    pairs = (part.partition(":") for part in written.split(",") if ":" in part)
    backends = {device: name for device, _, name in pairs}
    return (str(group.name()) if len(set(backends.values())) != 1 else next(iter(backends.values()))), backends


def ranks_of(group: Any) -> list[int]:
    """Its members in the world, in their order; []: not known."""
    mapped = getattr(world(), "pg_group_ranks", {}).get(group)
    if mapped:
        return sorted(mapped, key=lambda rank: int(mapped[rank]))
    for device in getattr(group, "_device_types", ()):  # at its registration PyTorch's book has no ranks yet
        options = getattr(group._get_backend(device), "options", None)
        ranks = list(getattr(options, "global_ranks_in_group", ()))
        if ranks:
            return ranks
    pg_map = getattr(world(), "pg_map", {})
    alone = len(pg_map) == 0 or (len(pg_map) == 1 and group in pg_map)
    return list(range(group.size())) if alone else []
