"""A backend inside one process: ranks are threads, and what they say to each other goes through memory.

A collective is done by the thread of the rank that comes last, so an asynchronous one may be completed by a thread that did not
call for it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from .. import _check
from ._moves import Array, Call, move, read, type_of, write
from ._work import CommunicatorAborted


class World:
    """The ranks of a group, and what is under way between them."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._lock = threading.Lock()
        self._calls: dict[int, dict[int, Call]] = {}  # of each collective, by rank
        self._counts = [0] * size
        self._ran_out: dict[int, tuple[str, set[int]]] = {}  # collectives that failed, and who has not called yet
        self._sent: dict[tuple[int, int], deque[tuple[Array, Call]]] = {}
        self._wanted: dict[tuple[int, int], deque[Call | str]] = {}  # a str: it was given up, for that reason
        self._parts: list[tuple[tuple[int, ...], World]] = []  # and its ranks
        self._left: dict[int, str] = {}
        self._over: str | None = None

    def start(self, rank: int, call: Call) -> None:
        """call.work is done, or fails, when all ranks have called, maybe in another's thread."""
        if call.op in ("send", "recv"):
            return self._send(rank, call) if call.op == "send" else self._recv(rank, call)
        with self._lock:
            if self._over is not None:
                return call.said()._fail(CommunicatorAborted(self._over), "aborted")
            number = self._counts[rank] = self._counts[rank] + 1
            failed = self._failed(number, rank)
            if failed is None:
                call.said()._ran_out = lambda error: self._run_out(number, error)
                calls = self._calls.setdefault(number, {})
                calls[rank] = call
                if len(calls) < self.size:
                    return
                del self._calls[number]
        if failed is not None:
            return call.said()._fail(failed, "timed_out" if isinstance(failed, TimeoutError) else "error")
        self._do(number, [calls[rank] for rank in range(self.size)])

    def _failed(self, number: int, rank: int) -> Exception | None:
        """Has it failed before this rank has called for it?"""
        ran_out = self._ran_out.get(number)
        if ran_out is not None:
            why, missing = ran_out
            missing.discard(rank)
            if not missing:
                del self._ran_out[number]
            return TimeoutError(why)
        gone = [why for other, why in self._left.items() if self._counts[other] < number]
        return RuntimeError(gone[0]) if gone else None

    def _run_out(self, number: int, error: TimeoutError) -> None:
        """One outcome for all ranks, late ones too. If all have come meanwhile, their data is moving, and that has an end."""
        with self._lock:
            calls = self._calls.pop(number, None)
            if calls is None:
                return
            missing = set(range(self.size)) - set(calls)
            why = f"{error}; rank {', '.join(str(rank) for rank in sorted(missing))} has not"
            self._ran_out[number] = (why, missing)
        for call in calls.values():
            call.said()._fail(TimeoutError(why), "timed_out")

    def leave(self, rank: int, why: str = "has left the group") -> None:
        """What waits for that rank fails."""
        why = f"rank {rank} {why}"
        with self._lock:
            self._left.setdefault(rank, why)
            numbers = [number for number, calls in self._calls.items() if rank not in calls]
            lost = [call for number in numbers for call in self._calls.pop(number).values()]
            for key in [key for key in self._wanted if key[0] == rank]:
                lost += [call for call in self._wanted.pop(key) if isinstance(call, Call)]
        for call in lost:
            call.said()._fail(RuntimeError(why))

    def leave_all(self, rank: int, why: str) -> None:
        """With its parts."""
        self.leave(rank, why)
        for members, part in list(self._parts):
            if rank in members:
                part.leave_all(members.index(rank), why)

    def come_back(self, why: str) -> None:
        """Forgets who left for that reason: whose thread has ended may be called for by others, when all threads have."""
        with self._lock:
            self._left = {rank: said for rank, said in self._left.items() if said != f"rank {rank} {why}"}
        for _, part in list(self._parts):
            part.come_back(why)

    def _do(self, number: int, calls: list[Call]) -> None:
        try:
            if len({call.op for call in calls}) > 1:
                called = ", ".join(f"rank {rank} {call.op}" for rank, call in enumerate(calls))
                raise RuntimeError(f"ranks called for different operations as number {number} of their group: {called}")
            if calls[0].op == "split":
                self._split(calls)
            else:
                move(calls)
        except Exception as error:
            for call in calls:
                call.said()._fail(error)
        else:
            for call in calls:
                call.said()._complete()

    def _split(self, calls: list[Call]) -> None:
        parts: dict[tuple[int, ...], World] = {}
        for rank, call in enumerate(calls):
            members = tuple(call.ranks)
            if not members:
                continue
            if rank not in members:
                raise ValueError(f"split: rank {rank} names the ranks {list(members)}; it is in its own group, or names none")
            wrong = [other for other in members if not 0 <= other < self.size or tuple(calls[other].ranks) != members]
            if wrong or len(set(members)) < len(members):
                raise ValueError(f"split: rank {rank} names the ranks {list(members)}, and rank {wrong[0] if wrong else members[0]} does not")
            call.part = parts.setdefault(members, World(len(members)))
        with self._lock:
            self._parts += parts.items()

    # --- one to one ---

    def _send(self, rank: int, call: Call) -> None:
        """Done at once: what is sent is kept."""
        values = read(call.inputs[0]).copy()
        key = (rank, call.peer)
        with self._lock:
            if self._over is not None:
                return call.said()._fail(CommunicatorAborted(self._over), "aborted")
            waiting = self._wanted.get(key)
            to = waiting.popleft() if waiting else None
            gone = self._left.get(call.peer) if to is None else None
            if to is None and gone is None:
                self._sent.setdefault(key, deque()).append((values, call))
        if isinstance(to, str):
            return call.said()._fail(TimeoutError(to), "timed_out")
        if gone is not None:
            return call.said()._fail(RuntimeError(gone))
        call.said()._complete()
        if to is not None:
            _receive(to, values, type_of(call.inputs[0]))

    def _recv(self, rank: int, call: Call) -> None:
        with self._lock:
            if self._over is not None:
                return call.said()._fail(CommunicatorAborted(self._over), "aborted")
            key = (call.peer, rank)
            sent = self._sent.get(key)
            gone = self._left.get(call.peer)
            if not sent and gone is None:
                call.said()._ran_out = lambda error: self._run_out_of(key, call, error)
                self._wanted.setdefault(key, deque()).append(call)
                return
            values, sender = sent.popleft() if sent else (None, None)
        if values is None or sender is None:
            return call.said()._fail(RuntimeError(str(gone)))
        _receive(call, values, type_of(sender.inputs[0]))

    def _run_out_of(self, key: tuple[int, int], call: Call, error: TimeoutError) -> None:
        """What is sent later for that receive fails, too, so that the next is for the next."""
        with self._lock:
            waiting = self._wanted.get(key)
            if not waiting or call not in waiting:
                return
            waiting[waiting.index(call)] = str(error)
        call.said()._fail(error, "timed_out")

    def abort(self, reason: str) -> None:
        """What is under way fails, and so does what is called for later."""
        with self._lock:
            if self._over is not None:
                return
            self._over = reason
            left = [call for calls in self._calls.values() for call in calls.values()]
            left += [call for waiting in self._wanted.values() for call in waiting if isinstance(call, Call)]
            self._calls.clear()
            self._wanted.clear()
        for call in left:
            call.said()._fail(CommunicatorAborted(reason), "aborted")

    def abort_all(self, reason: str) -> None:
        """With its parts."""
        self.abort(reason)
        for _, part in list(self._parts):
            part.abort_all(reason)


def _receive(call: Call, values: Array, sent: str | None) -> None:
    """`sent`: their type; None: any."""
    try:
        wanted = type_of(call.outputs[0])
        if wanted is not None and sent is not None and wanted != sent:
            raise TypeError(f"{sent} was sent, and the tensor that receives it is of {wanted}; give one of that type")
        write(call.outputs[0], values)
    except Exception as error:
        call.said()._fail(error)
    else:
        call.said()._complete()


# --- which ranks meet ---

_here = threading.local()  # rank and worlds of run_ranks()


class Worlds:
    """The groups that the threads of one run_ranks() make, by name."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._lock = threading.Lock()
        self._by_name: dict[tuple[str, int], World] = {}
        self._made: dict[tuple[str, int], int] = {}
        self._over: str | None = None

    def of(self, name: str, rank: int) -> World:
        """The n-th of that name that this rank makes is the n-th of all."""
        with self._lock:
            nth = self._made[name, rank] = self._made.get((name, rank), 0) + 1
            found = self._by_name.setdefault((name, nth), World(self.size))
            over = self._over
        if over is not None:
            found.abort(over)
        return found

    def leave_all(self, rank: int, why: str) -> None:
        with self._lock:
            all = list(self._by_name.values())
        for world in all:
            world.leave_all(rank, why)

    def come_back(self, why: str) -> None:
        for world in list(self._by_name.values()):
            world.come_back(why)

    def abort_all(self, reason: str) -> None:
        with self._lock:
            self._over = reason = self._over or reason
            all = list(self._by_name.values())
        for world in all:
            world.abort_all(reason)


def here() -> tuple[int, Worlds]:
    """The rank of this thread, and its worlds; outside of run_ranks() a rank by itself."""
    found: tuple[int, Worlds] | None = getattr(_here, "place", None)
    return found if found is not None else (0, Worlds(1))


_RETURNED = "has returned, and calls for nothing more"


def run_ranks(size: int, program: Callable[[], Any]) -> list[Any]:
    """Runs `program` in `size` threads, each a rank: new_comm("loopback", …) in them finds the others. Returns what each
    returned, by rank; what the first raised is raised when all have ended, and the others' groups are aborted meanwhile."""
    size = _check.whole("size", size, 1, 2**15)
    if not callable(program):
        raise TypeError(f"program is {program!r}; give a function, which each rank calls")
    worlds = Worlds(size)
    answers: list[Any] = [None] * size
    raised: list[BaseException] = []

    def rank_of(rank: int) -> None:
        _here.place = (rank, worlds)
        try:
            answers[rank] = program()
        except BaseException as error:
            raised.append(error)
            worlds.abort_all(f"rank {rank} has raised {type(error).__name__}")
        worlds.leave_all(rank, _RETURNED)

    threads = [threading.Thread(target=rank_of, args=(rank,), name=f"rank {rank}") for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    worlds.come_back(_RETURNED)
    if raised:
        raise raised[0]
    return answers
