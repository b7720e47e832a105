"""Through what are collectives reported, and who may refuse one?

The protocol is small on purpose: a group issues a call, which its hooks may refuse; the call returns or raises; the operation
that it stands for ends once. In C++ each group is a communicator of the bus, on which the hooks hang (comms.hooks_of).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import ringmain._native as _native
from ringmain._vetoed import OperationVetoed

if TYPE_CHECKING:
    from ringmain import Bus

SOURCE = "torch"


class CollectiveVetoed(OperationVetoed):
    """A hook refused this collective, and PyTorch was not called. `reason` is the hook's; what it raised is the cause."""


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


class Shown(NamedTuple):
    """What hooks are shown of a call, in the order in which C++ takes it. Tensors are the caller's own."""

    kind: str  # torchcomms' word; "": it has none
    inputs: Sequence[object]
    outputs: Sequence[object]
    reduce: str = "other"
    input_split_sizes: Sequence[int] = ()
    output_split_sizes: Sequence[int] = ()
    point_to_point: bool = False


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
    """The backend's call, in its thread, which is marked with the operation until it is over. Post hooks are called then."""

    @property
    def operation(self) -> Operation: ...

    def unmark(self) -> None:
        """What the thread calls for from here on is no part of it."""

    def returned(self, work: object = None) -> None: ...

    def threw(self, reason: str) -> None: ...


class Group(Protocol):
    """One rank's end of a group."""

    @property
    def heard(self) -> bool:
        """Somebody is told of its operations: a subscriber, or a hook."""

    @property
    def shows(self) -> bool:
        """Somebody is shown their tensors: a hook, or a subscriber of collective.shapes."""

    def issue(self, call: Call, ends: bool, shown: Shown | None = None) -> Issuing:
        """`ends`: somebody will say what becomes of it. Without `shown` no hook is called. Raises CollectiveVetoed, or
        what is no Exception (KeyboardInterrupt) where a hook raised it: then the backend is not to be called."""

    def was_issued(self, call: Call) -> None:
        """Nobody was there to say it when it was, and no hook is called."""

    def end(self, reason: str, operations: int, cancels: bool = True) -> None:
        """Its hooks end. What is open is cancelled, unless somebody goes on saying its end. Again: nothing."""


class Collectives(Protocol):
    """A bus's ledger."""

    @property
    def heard(self) -> bool: ...

    @property
    def waits_heard(self) -> bool: ...

    @property
    def open(self) -> int:
        """Operations that have not ended."""

    def group(self, name: str, description: str, backend: str, rank: int, size: int, ranks: Sequence[int], timeout: float) -> Group:
        """`timeout`: seconds; 0: not known."""


class LedgerGroup:
    """A communicator of the bus."""

    def __init__(self, native: _native.CollectiveGroup, name: str) -> None:
        self._native, self._name = native, name

    @property
    def heard(self) -> bool:
        return self._native.heard

    @property
    def shows(self) -> bool:
        return self._native.shows

    def issue(self, call: Call, ends: bool, shown: Shown | None = None) -> Issuing:
        issuing = self._native.issue(*call, ends, None if shown is None else _native.CollectiveShown(*shown))
        if issuing.refused:
            if issuing.error is not None and not isinstance(issuing.error, Exception):
                raise issuing.error  # Ctrl-C, or the program's exit, came while the hook ran
            op = (shown.kind if shown is not None else "") or call.op
            words = f"a hook refused {op} of group {self._name!r}: {issuing.reason}"
            raise CollectiveVetoed(words, issuing.reason) from issuing.error
        return issuing

    def was_issued(self, call: Call) -> None:
        self._native.was_issued(*call, False)

    def end(self, reason: str, operations: int, cancels: bool = True) -> None:
        self._native.end(reason, operations, cancels)


class LedgerCollectives:
    """The ledger of one bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus._native
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

    def group(self, name: str, description: str, backend: str, rank: int, size: int, ranks: Sequence[int], timeout: float = 0.0) -> Group:
        return LedgerGroup(_native.CollectiveGroup(self._bus, self._native, name, description, backend, SOURCE, rank, size,
                                                   list(ranks), timeout), name)
