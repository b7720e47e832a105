"""A communicator with torchcomms' methods: what it does goes through its hooks, and is said on the bus."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from .. import _check, _native
from .._bus import Bus
from ._hooks import Hooks, _OfGroup
from ._loopback import here
from ._moves import Call
from ._names import ReduceOp, reduce_op
from ._work import CommunicatorAborted, OperationVetoed, Work, seconds_of


class Backend(Protocol):
    """Who moves the data for one rank."""

    def start(self, call: Call) -> None:
        """Sees to it that call.work is completed, or fails; or raises, and nothing was started."""

    def finalize(self) -> None: ...


class Aborted(NamedTuple):
    """What an abort came to."""

    how: str  # "done", "joined" (somebody else's), "unsupported" (no hook was called), "ended" (it was over before)
    incident: int
    hooks: int  # that were called
    operations: int  # that failed with it
    stuck: list[str]  # names of the hooks that had not returned in time


class BatchSendRecv:
    """Sends and receives that are handed over together: comm.batch_op_create()."""

    def __init__(self) -> None:
        raise TypeError("a batch is made by comm.batch_op_create()")

    @classmethod
    def _of(cls, comm: Comm) -> BatchSendRecv:
        made = cls.__new__(cls)
        made._comm, made._calls = comm, []
        return made

    _comm: Comm
    _calls: list[Call]

    def send(self, tensor: Any, dst: int) -> None:
        self._calls.append(Call("send", [tensor], [], self._comm._rank("dst", dst)))

    def recv(self, tensor: Any, src: int) -> None:
        self._calls.append(Call("recv", [], [tensor], self._comm._rank("src", src)))

    def issue(self, async_op: bool = False, timeout: Any = None) -> Work:
        """One operation, batch_op_issue, whatever is in it. The batch is empty afterwards."""
        calls, self._calls = self._calls, []
        return self._comm._run(Call("batch_op_issue", [], [], parts=calls), async_op, timeout)

    def __repr__(self) -> str:
        return f"<batch of {len(self._calls)} for {self._comm!r}>"


class Comm(Hooks):
    """One rank's end of a group: ringmain.comms.new_comm(…). Threads: operations come from one thread at a time, in the same
    order on all ranks; everything else from any.

    An operation returns its Work; without `async_op` it is done by then. `timeout` is in seconds, or a timedelta; `hints` are for
    backends that read them, and these do not.
    """

    def __init__(self) -> None:
        raise TypeError("a communicator is made by ringmain.comms.new_comm(…)")

    @classmethod
    def _of(cls, native: _native.Communicator, bus: Bus, backend: Backend, ranks: Sequence[int], device: Any, timeout: float | None) -> Comm:
        made = cls.__new__(cls)
        made._begin_hooks(native, bus)
        made._backend, made._ranks, made._device, made._timeout = backend, list(ranks), device, timeout
        _known[native] = made
        if timeout is not None:
            native.set_timeout(timeout)  # for watchdogs and recorders
        return made

    _backend: Backend
    _ranks: list[int]
    _device: Any
    _timeout: float | None

    # --- who it is ---

    def get_rank(self) -> int:
        return self._native.rank

    def get_size(self) -> int:
        return self._native.size

    def get_name(self) -> str:
        return self._native.name

    def get_backend(self) -> str:
        return self._native.backend

    def get_device(self) -> Any:
        """As new_comm() was told."""
        return self._device

    # --- the 22 operations ---

    def send(self, tensor: Any, dst: int, async_op: bool = False, hints: Any = None, timeout: Any = None) -> Work:
        return self._run(Call("send", [tensor], [], self._rank("dst", dst)), async_op, timeout)

    def recv(self, tensor: Any, src: int, async_op: bool = False, hints: Any = None, timeout: Any = None) -> Work:
        return self._run(Call("recv", [], [tensor], self._rank("src", src)), async_op, timeout)

    def broadcast(self, tensor: Any, root: int, async_op: bool = False, hints: Any = None, timeout: Any = None) -> Work:
        return self._run(Call("broadcast", [tensor], [], self._rank("root", root)), async_op, timeout)

    def all_reduce(self, tensor: Any, op: Any = ReduceOp.SUM, async_op: bool = False, hints: Any = None, timeout: Any = None) -> Work:
        return self._run(Call("all_reduce", [tensor], [], reduce=reduce_op(op)), async_op, timeout)

    def reduce(self, tensor: Any, root: int, op: Any = ReduceOp.SUM, async_op: bool = False, hints: Any = None, timeout: Any = None) -> Work:
        return self._run(Call("reduce", [tensor], [], self._rank("root", root), reduce_op(op)), async_op, timeout)

    def all_gather(self, tensor_list: Sequence[Any], tensor: Any, async_op: bool = False, hints: Any = None, timeout: Any = None) -> Work:
        return self._run(Call("all_gather", [tensor], _list("tensor_list", tensor_list)), async_op, timeout)

    def all_gather_v(self, tensor_list: Sequence[Any], tensor: Any, async_op: bool = False, hints: Any = None, timeout: Any = None) -> Work:
        return self._run(Call("all_gather_v", [tensor], _list("tensor_list", tensor_list)), async_op, timeout)

    def all_gather_single(self, output: Any, input: Any, async_op: bool = False, hints: Any = None, timeout: Any = None) -> Work:
        return self._run(Call("all_gather_single", [input], [output]), async_op, timeout)

    def reduce_scatter(self, output: Any, input_list: Sequence[Any], op: Any = ReduceOp.SUM, async_op: bool = False, hints: Any = None,
                       timeout: Any = None) -> Work:
        return self._run(Call("reduce_scatter", _list("input_list", input_list), [output], reduce=reduce_op(op)), async_op, timeout)

    def reduce_scatter_v(self, output: Any, input_list: Sequence[Any], op: Any = ReduceOp.SUM, async_op: bool = False, hints: Any = None,
                         timeout: Any = None) -> Work:
        return self._run(Call("reduce_scatter_v", _list("input_list", input_list), [output], reduce=reduce_op(op)), async_op, timeout)

    def reduce_scatter_single(self, output: Any, input: Any, op: Any = ReduceOp.SUM, async_op: bool = False, hints: Any = None,
                              timeout: Any = None) -> Work:
        return self._run(Call("reduce_scatter_single", [input], [output], reduce=reduce_op(op)), async_op, timeout)

    def all_to_all_single(self, output: Any, input: Any, async_op: bool = False, hints: Any = None, timeout: Any = None) -> Work:
        return self._run(Call("all_to_all_single", [input], [output]), async_op, timeout)

    def all_to_all_v_single(self, output: Any, input: Any, output_split_sizes: Sequence[int], input_split_sizes: Sequence[int],
                            async_op: bool = False, hints: Any = None, timeout: Any = None) -> Work:
        """Split sizes are numbers of rows, for each rank."""
        splits = (_sizes("input_split_sizes", input_split_sizes), _sizes("output_split_sizes", output_split_sizes))
        return self._run(Call("all_to_all_v_single", [input], [output], splits=splits), async_op, timeout)

    def all_to_all(self, output_tensor_list: Sequence[Any], input_tensor_list: Sequence[Any], async_op: bool = False, hints: Any = None,
                   timeout: Any = None) -> Work:
        call = Call("all_to_all", _list("input_tensor_list", input_tensor_list), _list("output_tensor_list", output_tensor_list))
        return self._run(call, async_op, timeout)

    def barrier(self, async_op: bool = False, hints: Any = None, timeout: Any = None) -> Work:
        return self._run(Call("barrier", [], []), async_op, timeout)

    def scatter(self, output_tensor: Any, input_tensor_list: Sequence[Any], root: int, async_op: bool = False, hints: Any = None,
                timeout: Any = None) -> Work:
        """The list is read at the root only."""
        call = Call("scatter", _list("input_tensor_list", input_tensor_list), [output_tensor], self._rank("root", root))
        return self._run(call, async_op, timeout)

    def gather(self, output_tensor_list: Sequence[Any], input_tensor: Any, root: int, async_op: bool = False, hints: Any = None,
               timeout: Any = None) -> Work:
        """The list is written at the root only."""
        call = Call("gather", [input_tensor], _list("output_tensor_list", output_tensor_list), self._rank("root", root))
        return self._run(call, async_op, timeout)

    def gather_single(self, output: Any, input: Any, root: int, async_op: bool = False, hints: Any = None, timeout: Any = None) -> Work:
        """`output` is written at the root only; elsewhere it may be None."""
        call = Call("gather_single", [input], [] if output is None else [output], self._rank("root", root))
        return self._run(call, async_op, timeout)

    def batch_op_create(self) -> BatchSendRecv:
        """Collects sends and receives, for one batch_op_issue."""
        return BatchSendRecv._of(self)

    def new_window(self, tensor: Any = None) -> Any:
        """These backends have no windows: NotImplementedError, which hooks see as an operation that its backend did not take."""
        with self._issue(Call("new_window", [], []), False):
            raise NotImplementedError(f"backend {self.get_backend()!r} has no windows; send() and recv() are what it has")

    def split(self, ranks: Sequence[int], name: str, hints: Any = None, timeout: Any = None) -> Comm | None:
        """All ranks call it, each with the ranks of its own new group, or none. The part has the hooks that this communicator
        has now; None: this rank is in none."""
        ranks = [self._rank("ranks", rank) for rank in _sizes("ranks", ranks)]
        call = Call("split", [], [], ranks=ranks, name=_check.text("name", name))
        if ranks and self.get_rank() not in ranks:
            raise ValueError(f"split: rank {self.get_rank()} is not in the ranks {ranks}; a rank names its own group, or an empty list")
        with self._issue(call, False) as issuing:
            call.work = Work._of(None, self._what("split"), self._limit(timeout))
            self._backend.start(call)
            call.work.wait()
            if call.part is None:
                self._native.no_part()
                issuing.returned_part(None)
                return None
            world = [self._ranks[rank] for rank in ranks]
            part = Comm._of(self._native.part(_native.CommunicatorOptions(
                name, ranks.index(self.get_rank()), len(ranks), world, self.get_backend(), source="python",
                abort=getattr(call.part, "abort", None))), self._bus, call.part, world, self._device, self._timeout)
            part._inherit(self)
            issuing.returned_part(part._native)
            return part

    def finalize(self) -> None:
        """Ends it: operations and hooks are refused from here on. May be called again."""
        if self._native.ended:
            return
        if not self._native.aborted:
            with self._issue(Call("finalize", [], []), False):
                self._backend.finalize()
        self._native.end()

    # --- giving up ---

    def abort(self, reason: str = "the application asked for it", within: float = 5.0) -> Aborted:
        """Calls all abort hooks, which together have `within` seconds; then what is open fails as aborted, and so does what is
        called for later. The GIL is released meanwhile. Where is_abort_supported() is false, nothing is done."""
        return Aborted(**self._native.abort(_check.text("reason", reason), "application", _within(within)))

    def run_abort_hooks(self, reason: str, asked_by: str = "backend", within: float = 5.0) -> Aborted:
        """Only the hooks, for who gives the group up by other means. Each call is an incident."""
        return Aborted(**self._native.run_abort_hooks(_check.text("reason", reason), _check.text("asked_by", asked_by), _within(within)))

    def is_abort_supported(self) -> bool:
        return self._native.supports_abort

    def is_aborted(self) -> bool:
        return self._native.aborted

    # --- how ---

    def _run(self, call: Call, async_op: bool, timeout: Any) -> Work:
        limit = self._limit(timeout)
        with self._issue(call, async_op, seconds_of(timeout)) as issuing:
            call.work = work = Work._of(issuing.operation, self._what(call.op), limit)
            if call.op == "batch_op_issue":
                self._start_all(call.parts, work)
            else:
                self._backend.start(call)
            if not async_op:
                work.wait()
            issuing.returned(work)
        return work

    def _issue(self, call: Call, async_op: bool, timeout: float | None = None) -> _native.Issuing:
        if not isinstance(async_op, (bool, int)):
            raise TypeError(f"async_op is {async_op!r}; give True or False")
        reduction = call.reduce.type.value if call.reduce is not None else "sum"
        issuing = self._native.issue(call.op, call.inputs, call.outputs, call.peer, reduction, bool(async_op), False, call.splits[0],
                                     call.splits[1], len(call.parts), call.ranks, call.name,
                                     [((part.inputs or part.outputs)[0], part.peer, part.op == "send") for part in call.parts], timeout or 0.0)
        if not issuing.refused:
            return issuing
        if self._native.aborted:
            raise CommunicatorAborted(f"{self._what(call.op)}: {issuing.reason}")
        if self._native.ended:
            raise RuntimeError(f"{self._what(call.op)}: {issuing.reason}; make another by new_comm()")
        if issuing.error is not None:
            issuing.error.add_note(f"raised by a pre hook, which refused {self._what(call.op)}")
            raise issuing.error
        raise OperationVetoed(f"a hook refused {self._what(call.op)}: {issuing.reason}", issuing.reason)

    def _start_all(self, calls: list[Call], work: Work) -> None:
        if not calls:
            return work._complete()
        left, lock = len(calls), threading.Lock()

        def one_over(error: BaseException | None) -> None:
            nonlocal left
            with lock:
                left -= 1
                last = left == 0
            if error is not None:
                work._fail(error, "timed_out" if isinstance(error, TimeoutError) else "error")
            elif last:
                work._complete()

        def wait_for_all(limit: float | None) -> None:
            for call in calls:
                with suppress(Exception):  # work has it by then
                    call.said().wait(limit)

        work._block = wait_for_all  # type: ignore[method-assign]
        for call in calls:
            call.work = Work._of(None, self._what(call.op))
            call.work._after = one_over
            self._backend.start(call)

    def _limit(self, timeout: Any) -> float | None:
        found = seconds_of(timeout)
        return found if found is not None else self._timeout

    def _rank(self, what: str, rank: Any) -> int:
        found = _check.whole(what, rank, -(2**31), 2**31 - 1)
        if not 0 <= found < self.get_size():
            raise ValueError(f"{what} is {found}, and group {self.get_name()!r} has ranks 0 to {self.get_size() - 1}")
        return found

    def _what(self, op: str) -> str:
        return f"{op} of group {self.get_name()!r}"

    def __repr__(self) -> str:
        state = ", ended" if self._native.ended else ", aborted" if self._native.aborted else ""
        return f"<communicator {self.get_name()!r}, rank {self.get_rank()} of {self.get_size()}{state}>"


TorchComm = Comm  # torchcomms' word
_known: weakref.WeakValueDictionary[_native.Communicator, Comm] = weakref.WeakValueDictionary()


def comm_of(native: _native.Communicator | None) -> Hooks | None:
    """The communicator whose that is; of one that was made elsewhere, where its hooks are registered."""
    if native is None:
        return None
    found = _known.get(native)
    return found if found is not None else _OfGroup(native, Bus.process())


class _Loopback:
    """One rank's end of a World."""

    def __init__(self, world: Any, rank: int) -> None:
        self._world, self._at = world, rank

    def start(self, call: Call) -> None:
        self._world.start(self._at, call)
        if call.op == "split" and call.work is not None:
            call.work.wait()
            if call.part is not None:
                call.part = _Loopback(call.part, call.ranks.index(self._at))

    def finalize(self) -> None:
        """Who waits for this rank waits in vain."""
        self._world.leave(self._at)

    def abort(self, reason: str) -> None:
        self._world.abort(reason)


def new_comm(backend: str, device: Any = None, name: str = "", *, timeout: Any = None, bus: Bus | None = None,
             abort_process_on_timeout_or_error: Any = None, high_priority_stream: Any = None, store: Any = None, hints: Any = None) -> Comm:
    """This rank's end of a group, which all ranks make, in the same order.

    backend: "loopback": ranks are the threads of run_ranks(), outside of it there is one rank; or one of torch.distributed's
    ("gloo", …), whose ranks are those of torchrun. name: the group's, for events and find; `timeout`: of its operations, in
    seconds or a timedelta. Its events are published on `bus`, by default the process's. The other arguments are torchcomms', and
    have no meaning here, but for `store`, which torch.distributed gets.
    """
    _check.text("backend", backend)
    name = _check.text("name", name) or backend
    limit = seconds_of(timeout)
    bus = bus if bus is not None else Bus.process()
    _check.instance("bus", bus, Bus, "a ringmain.Bus")
    made: Backend
    if backend == "loopback":
        rank, worlds = here()
        size = worlds.size
        made = _Loopback(worlds.of(name, rank), rank)
    else:
        from ._process_group import ProcessGroupBackend

        made = ProcessGroupBackend.make(backend, name, store)
        rank, size = made.rank, made.size
    native = _native.Communicator.make(bus._native, _native.CommunicatorOptions(
        name, rank, size, range(size), backend, source="python", abort=getattr(made, "abort", None)))
    return Comm._of(native, bus, made, range(size), device, limit)


def _list(what: str, tensors: Any) -> list[Any]:
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{what} is a {type(tensors).__name__}; give a list of tensors")
    return list(tensors)


def _sizes(what: str, sizes: Any) -> list[int]:
    try:
        return [_check.whole(what, size, 0, 2**31 - 1) for size in sizes]
    except TypeError:
        raise TypeError(f"{what} is {sizes!r}; give a list of whole numbers") from None


def _within(seconds: Any) -> float:
    found = seconds_of(seconds)
    if found is None:
        raise ValueError("within is None; give seconds from 0")
    return found
