"""Through what are collectives reported, and who may refuse one?

The protocol is small on purpose: a group issues a call, which may be refused; the call returns or raises; the operation
that it stands for ends once. All of it publishes through C++, by the bus's one ledger of operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import ringmain._native as _native

if TYPE_CHECKING:
    from ringmain import Bus

SOURCE = "torch"


class CollectiveVetoed(RuntimeError):
    """A hook refused this collective before it was issued."""


class Call(NamedTuple):
    """What is called for, in the order in which C++ takes it."""

    op: str  # PyTorch's word; C++ turns it into that of all sources
    sequence: int = 0  # the group's count of its collectives; 0: point to point
    bytes: int = 0  # the larger of what this rank gives and gets
    in_elements: int = 0
    out_elements: int = 0
    correlation: int = 0  # PyTorch's own number of it in its group
    dtype: str = ""
    backend: str = ""
    peer: int = -1  # the other rank, or the root
    device: int = -1
    asynchronous: bool = False


class Operation(Protocol):
    """What becomes of it. Each word by any thread; the first end is believed. Called with a future that is done, it
    says the end that the future has come to."""

    @property
    def id(self) -> int:
        """0: nobody listens, and each word is harmless."""

    def completed(self) -> bool: ...

    def failed(self, reason: str, how: str = "error") -> bool: ...

    def raised(self, reason: str) -> bool:
        """Failed, as the text of what was raised to whoever waited for it says."""

    def wait_began(self) -> int: ...

    def wait_ended(self, since_ns: int) -> None: ...

    def __call__(self, future: object) -> None: ...


class Issuing(Protocol):
    """The backend's call, in its thread, which is marked with the operation until it is over."""

    @property
    def operation(self) -> Operation: ...

    def returned(self) -> None: ...

    def threw(self, reason: str) -> None: ...


class Group(Protocol):
    """One rank's end of a group."""

    def issue(self, call: Call, ends: bool) -> Issuing:
        """`ends`: somebody will say what becomes of it. Raises CollectiveVetoed: then the backend is not to be called."""

    def was_issued(self, call: Call) -> None:
        """Nobody was there to say it when it was."""

    def end(self, reason: str, operations: int) -> None:
        """What is open is cancelled. Again: nothing."""


class Collectives(Protocol):
    """A bus's ledger."""

    @property
    def heard(self) -> bool: ...

    @property
    def waits_heard(self) -> bool: ...

    @property
    def open(self) -> int:
        """Operations that have not ended."""

    def group(self, name: str, description: str, backend: str, rank: int, size: int, ranks: Sequence[int]) -> Group: ...


class LedgerGroup:
    """A group of the bus's ledger. Nobody can refuse there."""

    def __init__(self, native: _native.CollectiveGroup) -> None:
        self._native = native

    def issue(self, call: Call, ends: bool) -> Issuing:
        issuing: Issuing = self._native.issue(*call, ends)
        return issuing

    def was_issued(self, call: Call) -> None:
        self._native.was_issued(*call, False)

    def end(self, reason: str, operations: int) -> None:
        self._native.end(reason, operations)


class LedgerCollectives:
    """The ledger of one bus."""

    def __init__(self, bus: Bus) -> None:
        self._native = _native.Collectives(bus._native)

    @property
    def heard(self) -> bool:
        return bool(self._native.heard)

    @property
    def waits_heard(self) -> bool:
        return bool(self._native.waits_heard)

    @property
    def open(self) -> int:
        return int(self._native.open)

    def group(self, name: str, description: str, backend: str, rank: int, size: int, ranks: Sequence[int]) -> Group:
        return LedgerGroup(_native.CollectiveGroup(self._native, name, description, backend, SOURCE, rank, size, list(ranks)))
