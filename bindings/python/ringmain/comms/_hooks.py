"""Hooks on a communicator: registered, called, and taken away again."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

from .. import _check, _native
from .._bus import Bus, Subscription, name_of
from .._native import Communicator as NativeCommunicator
from ._args import AbortHookArgs, CompletionHookArgs, PostHookArgs
from . import _styles


class RemovableHandle:
    """Takes one hook away, from the communicator and its parts. Dropping it keeps the hook. Threads: any."""

    def __init__(self) -> None:
        raise TypeError("a handle is what comm.register_pre_hook(…) returns")

    @classmethod
    def _of(cls, native: _native.CommunicatorHook | None = None) -> RemovableHandle:
        made = cls.__new__(cls)
        made._native = native
        made._heard: list[Subscription] = []  # type: ignore[misc]
        return made

    _native: _native.CommunicatorHook | None
    _heard: list[Subscription]

    def remove(self, timeout: float | None = None) -> str:
        """After "done", no call to the hook is running, or will start. Waits for a running one without the GIL.

        "deferred": called inside a hook or a subscriber; no call begins from then on. "timeout": a call is still running
        after that many seconds; ask again. "was_not_attached": it, or its communicator, had ended before. The caller must
        hold no lock that the hook wants.
        """
        limit = _check.seconds(timeout)
        if self._native is not None:
            return self._native.remove(limit)
        told = [heard.remove(limit) for heard in self._heard]
        return next((word for word in ("timeout", "deferred", "done") if word in told), "was_not_attached")

    @property
    def attached(self) -> bool:
        return self._native.attached if self._native is not None else any(heard.attached for heard in self._heard)

    @property
    def raised(self) -> int:
        """How often the hook raised. The logger "ringmain" has the first time, but for pre hooks whose caller got it."""
        return self._native.raised if self._native is not None else sum(heard.raised for heard in self._heard)

    @property
    def name(self) -> str:
        return self._native.name if self._native is not None else self._heard[0].name

    def __repr__(self) -> str:
        return f"<hook {self.name!r}{'' if self.attached else ', removed'}>"


class Hooks:
    """Where hooks are registered: a communicator, or a process group of PyTorch's (hooks_of). Threads: any, at any time,
    also inside a hook."""

    _native: NativeCommunicator
    _bus: Bus

    def register_pre_hook(self, callback: Any, more: Any = None, *, style: str | None = None, priority: int = 0,
                          name: str = "") -> RemovableHandle:
        """Called before each operation, in the thread that calls for it: cb(args), or torchcomms' cb(name, op_id, args),
        told apart by how many arguments the callback needs, or by `style`; or (id, cb), as on c10d's process groups.

        None or True lets the operation go on. False or a str refuses it: the caller gets OperationVetoed. So does an
        exception, which the caller gets as it is. Hooks are called by priority, the highest first, then in order of
        registration; a refusal ends it.
        """
        id, callback, style = _given(callback, more, style)
        return self._register("pre", _styles.pre(callback, style), callback, priority, name, id)

    def register_post_hook(self, callback: Any, more: Any = None, *, style: str | None = None, priority: int = 0, name: str = "",
                           on_dispatcher: bool = False) -> RemovableHandle:
        """Called when the backend's call has returned, which does not mean that the operation is done: cb(args), or torchcomms'
        cb(op_id, args); or (id, cb). What it raises is logged and counted, and costs the caller nothing.

        on_dispatcher: called in the bus's dispatcher thread, some time after the operation was issued, without `work` and
        `new_comm`, and before it is known whether a hook refuses.
        """
        id, callback, style = _given(callback, more, style)
        call = _styles.post(callback, style)
        if on_dispatcher:
            return self._hear({"collective.issued": functools.partial(_told_issued, call)}, callback, priority, name, ("post", id))
        return self._register("post", lambda *words: call(_post_args(words)), callback, priority, name, id)

    def register_completion_hook(self, callback: Any, *, priority: int = 0, name: str = "", on_dispatcher: bool = False) -> RemovableHandle:
        """Called once for each operation when it has completed or failed, in the thread that says so, whichever source it is
        of: cb(args). That thread takes the GIL for it; where it must not wait for the GIL, as a watchdog's, use
        on_dispatcher: then the bus's dispatcher thread calls it, some time later."""
        call = _styles.completion(callback)
        if on_dispatcher:
            hear = functools.partial(_told_end, call)
            return self._hear({"collective.completed": hear, "collective.failed": hear}, callback, priority, name, None)
        return self._register("completion", lambda *words: call(CompletionHookArgs(*words)), callback, priority, name, None)

    def register_abort_hook(self, callback: Any, more: Any = None, *, style: str | None = None, priority: int = 0,
                            name: str = "") -> RemovableHandle:
        """Called before the group is given up, each hook in a thread of its own: cb(), or cb(args); or (id, cb). All of them
        together have the time that the abort gives them; one that takes longer is left, and named."""
        id, callback, style = _given(callback, more, style)
        call = _styles.abort(callback, style)
        return self._register("abort", lambda *words: call(AbortHookArgs(*words)), callback, priority, name, id)

    def unregister_pre_hook(self, id: int) -> str:
        """As on c10d's process groups. Answers as RemovableHandle.remove()."""
        return self._unregister("pre", id)

    def unregister_post_hook(self, id: int) -> str:
        """As on c10d's process groups. Answers as RemovableHandle.remove()."""
        return self._unregister("post", id)

    def unregister_abort_hook(self, id: int) -> str:
        """As on c10d's process groups. Answers as RemovableHandle.remove()."""
        return self._unregister("abort", id)

    # --- how ---

    def _begin_hooks(self, native: NativeCommunicator, bus: Bus) -> None:
        self._native, self._bus = native, bus
        self._by_id: dict[tuple[str, int], RemovableHandle] = {}
        self._dispatched: list[tuple[RemovableHandle, dict[str, Callable[..., object]], int, str]] = []

    def _register(self, kind: str, call: Callable[..., object], callback: Any, priority: int, name: str, id: int | None) -> RemovableHandle:
        priority = _check.whole("priority", priority, -(2**31), 2**31 - 1)
        name = _check.text("name", name) or name_of(callback)
        made = RemovableHandle._of(self._native.hook(kind, call, priority, name))
        return self._known(kind, id, made)

    def _known(self, kind: str, id: int | None, made: RemovableHandle) -> RemovableHandle:
        if id is not None:
            before = self._by_id.get((kind, id))
            self._by_id[kind, id] = made
            if before is not None:
                before.remove()  # c10d's registry replaces, too
        return made

    def _unregister(self, kind: str, id: int) -> str:
        found = self._by_id.pop((kind, _check.whole("id", id, -(2**63), 2**63 - 1)), None)
        return "was_not_attached" if found is None else found.remove()

    def _hear(self, calls: dict[str, Callable[..., object]], callback: Any, priority: int, name: str,
              known: tuple[str, int | None] | None) -> RemovableHandle:
        if self._native.ended:
            raise ValueError(f"communicator {self._native.name!r} has ended; register hooks on one that is in use")
        name = _check.text("name", name) or name_of(callback)
        made = RemovableHandle._of()
        self._hear_on(made, calls, priority, name)
        return made if known is None else self._known(known[0], known[1], made)

    def _hear_on(self, handle: RemovableHandle, calls: dict[str, Callable[..., object]], priority: int, name: str) -> None:
        """The same hook on this communicator, of which `handle` may be an inherited one's."""
        group, rank = self._native.name, self._native.rank
        self._dispatched.append((handle, calls, priority, name))
        for channel, call in calls.items():
            def hear(events: _native.Batch, call: Callable[..., object] = call) -> None:
                failed: BaseException | None = None
                for event in events:
                    if event.group == group and event.rank == rank:
                        try:
                            call(event)
                        except Exception as error:
                            failed = error  # the others are told all the same
                if failed is not None:
                    raise failed

            hear.__qualname__ = name  # a name that is given would replace another hook's
            handle._heard.append(self._bus.subscribe(channel, hear, priority=priority))

    def _inherit(self, parent: Hooks) -> None:
        for handle, calls, priority, name in list(parent._dispatched):
            if handle.attached:
                self._hear_on(handle, calls, priority, name)


class _OfGroup(Hooks):
    def __init__(self, native: _native.Communicator, bus: Bus) -> None:
        self._begin_hooks(native, bus)

    def __repr__(self) -> str:
        return f"<hooks of group {self._native.name!r}, rank {self._native.rank} of {self._native.size}>"


_of_process_groups: weakref.WeakKeyDictionary[Any, _OfGroup] = weakref.WeakKeyDictionary()  # an id is known to each call


def hooks_of(group: Any, *, rank: int = -1, bus: Bus | None = None) -> Hooks:
    """Where hooks of a communicator that somebody else made are registered. `group` is its name, or a process group of PyTorch's
    that ringmain.torch hears; `rank` is needed where several ranks live in this process. LookupError: the bus knows none, or it
    has ended. Hooks stay until the group ends, or PyTorch is detached."""
    bus = bus if bus is not None else _attached_bus()
    _check.instance("bus", bus, Bus, "a ringmain.Bus")
    name = group if isinstance(group, str) else _name_of(group)
    if not isinstance(name, str):
        raise TypeError(f"group is {group!r}; give a torch.distributed.ProcessGroup, or a group's name")
    found = _native.Communicator.find(bus._native, name, _check.whole("rank", rank, -1, 2**31 - 1))
    if found is None:
        raise LookupError(f"bus {bus.name!r} knows no communicator {name!r}, or it has ended; make it by new_comm() or in C++, or hear "
                          "PyTorch's groups by ringmain.torch.attach(bus), and give hooks_of() the bus that it is on")
    if isinstance(group, str):
        return _OfGroup(found, bus)
    known = _of_process_groups.get(group)
    if known is None or known._native != found or known._native.ended or known._bus is not bus:
        known = _of_process_groups[group] = _OfGroup(found, bus)
    return known


def _name_of(group: Any) -> Any:
    try:
        return getattr(group, "group_name", None)
    except RuntimeError:  # PyTorch has destroyed it
        return str(group)


def _attached_bus() -> Bus:
    """That of ringmain.torch.attach(), or the process's."""
    attach = sys.modules.get("ringmain.torch._attach")
    attached = getattr(attach, "_attached", None)
    found = getattr(attached, "bus", None)
    return found if isinstance(found, Bus) else Bus.process()


def _given(callback: Any, more: Any, style: str | None) -> tuple[int | None, Any, str | None]:
    """(id, cb), or (cb)."""
    if more is None:
        return None, callback, style
    return _check.whole("id", callback, -(2**63), 2**63 - 1), more, style or "c10d"


def _post_args(words: tuple[Any, ...]) -> PostHookArgs:
    from ._comm import comm_of

    op_id, name, word, outcome, reason, work, part, group, rank, async_op = words
    return PostHookArgs(op_id, name, word, outcome, reason, work, comm_of(part), group, rank, async_op)


def _told_issued(call: Callable[[PostHookArgs], object], event: _native.Record) -> None:
    from ._names import OpName

    call(PostHookArgs(event.op_id, event.op if event.op in OpName.__members__ else "other", event.op, "issued", "", None, None,
                      event.group, event.rank, event.asynchronous))


def _told_end(call: Callable[[CompletionHookArgs], object], event: _native.Record) -> None:
    completed = event.channel == "collective.completed"
    call(CompletionHookArgs(event.op_id, event if completed else None, None if completed else event))
