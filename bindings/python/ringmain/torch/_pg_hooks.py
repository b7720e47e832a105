"""PyTorch from 2.14 on has hooks: one before and one after each operation of a group, whoever calls for it.

Its list of them has no lock, so each group gets one pair, before traffic if it can be, which stays for the group's life;
without somebody who listens it does nothing. Hooks that come and go are on the bus.
"""

from __future__ import annotations

import atexit
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ._c10d import POINT_TO_POINT_HOOKS, hooked
from ._collectives import Collectives, CollectiveVetoed, Issuing, Operation
from ._follow import Works
from ._groups import ENDS_KNOWN, ProcessGroup
from ._methods import methods_of
from ._patch import Patch
from ._surface import log

HOOK_ID = int.from_bytes(b"ringmain", "big")  # the caller of PyTorch picks it, and the same one would replace another's


class Told(Protocol):
    def pre(self, args: Any) -> None: ...


class Relay:
    """The pair of one group. It hands on while somebody is there."""

    def __init__(self) -> None:
        self.told: Told | None = None

    def pre(self, args: Any) -> None:
        told = self.told
        if told is not None:
            told.pre(args)

    def post(self, args: Any) -> None:
        """To who was there before the call: we may have been detached since."""
        for one in _here.begun:
            if one.op_id == args.op_id and one.group.relay() is self:
                one.group.post(args)
                return


_relays: weakref.WeakKeyDictionary[Any, Relay] = weakref.WeakKeyDictionary()  # of the process: they outlive attachments


def relay_of(group: Any) -> Relay:
    """The group's, registered at the first call."""
    relay = _relays.get(group)
    if relay is None:
        if not _relays:
            atexit.unregister(_let_go)
            atexit.register(_let_go)
        relay = Relay()
        group.register_pre_hook(HOOK_ID, relay.pre)
        group.register_post_hook(HOOK_ID, relay.post)
        _relays[group] = relay
    return relay


def _let_go() -> None:
    """The interpreter ends, and PyTorch may drop a group's hooks only after it: it would ask for the GIL then, and the process
    would die of it. Taking them out in traffic would be as bad, but who leaves a group behind has no more of it."""
    for group in list(_relays):
        try:
            group.unregister_pre_hook(HOOK_ID)
            group.unregister_post_hook(HOOK_ID)
        except Exception:
            log.debug("a group's hooks could not be taken out", exc_info=True)


class _Begun(NamedTuple):
    """An operation between its two hooks."""

    group: GroupHooks
    op_id: int
    issuing: Issuing
    backend: str
    depth: int  # of the caller's stack


class _Thread(threading.local):
    """What goes on in one thread."""

    def __init__(self) -> None:
        self.begun: list[_Begun] = []  # operations between their hooks
        self.in_methods = 0  # of ProcessGroup's, that Python called
        self.taken: Operation | None = None  # the last that a backend took
        self.ends_by_wait = False  # that one, and by nothing else
        self.refusal: BaseException | None = None  # the last, or a Ctrl-C; PyTorch may make a RuntimeError of it


_here = _Thread()  # of the process: what began under one attachment may be over after it


class HookCalls:
    """Our pairs in PyTorch's groups, and around the methods that hand Works to Python."""

    def __init__(self, collectives: Collectives, works: Works, failed: Callable[[BaseException], None]) -> None:
        self.collectives = collectives
        self.works = works
        self.failed = failed
        self.here = _here
        self.missed: list[str] = []  # groups that took no hooks
        self._relays: list[weakref.ref[Relay]] = []
        self._patches: list[Patch] = []

    def hook_in(self, process_group: type) -> None:
        self._patches = [Patch(process_group, name, self._method) for name in methods_of(process_group)]

    def add(self, known: ProcessGroup, group: Any) -> None:
        """A group that was made, or that is there."""
        try:
            relay = relay_of(group)
            relay.told = GroupHooks(self, known, relay)
            self._relays.append(weakref.ref(relay))
        except Exception as error:
            self.missed.append(known.name)
            self.failed(error)

    def hook_out(self) -> None:
        """The pairs stay with PyTorch, and hand on nothing."""
        for patch in self._patches:
            patch.take_out()
        for found in self._relays:
            relay = found()
            if relay is not None:
                relay.told = None
        self._relays.clear()

    def _method(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        here = self.here
        begun = len(here.begun)
        here.taken = here.refusal = None
        here.in_methods += 1
        try:
            work = original(*args, **kwargs)
        except BaseException as error:
            self.end_from(begun, str(error) or type(error).__name__)
            refusal, here.refusal = here.refusal, None
            if refusal is not None and error is not refusal and str(refusal) in str(error):
                raise refusal from refusal.__cause__
            raise
        finally:
            here.in_methods -= 1
        taken, here.taken = here.taken, None
        if taken is not None and work is not None:
            self.works.hand_out(work, taken, here.ends_by_wait)
        return work

    def end_from(self, place: int, reason: str) -> None:
        """This thread's from here on were called for, and the call is over without a post hook."""
        begun = self.here.begun
        while len(begun) > place:
            begun.pop().issuing.threw(reason)

    def settle(self) -> None:
        """The same for what was not called for by a method: whoever calls from inside another's hook stands deeper in the
        stack than that one's caller."""
        begun = self.here.begun
        if begun:
            depth = _depth()
            place = next((i for i, one in enumerate(begun) if one.depth >= depth), len(begun))
            self.end_from(place, _NO_POST)


_NO_POST = "its call raised, or another hook refused it"


class GroupHooks:
    """What is told of one group."""

    def __init__(self, calls: HookCalls, known: ProcessGroup, relay: Relay) -> None:
        self._calls = calls
        self._known = known
        self.relay = weakref.ref(relay)

    def pre(self, args: Any) -> None:
        calls, known = self._calls, self._known
        try:
            point_to_point = args.name.name in POINT_TO_POINT_HOOKS
            if known.reporter.heard:
                self._issue(args, point_to_point)
            if point_to_point and known.counts_point_to_point:
                known.point_to_point += 1
        except CollectiveVetoed as refusal:
            calls.here.refusal = refusal
            raise
        except Exception as error:
            calls.failed(error)
        except BaseException as ending:  # Ctrl-C, or the program's exit
            calls.here.refusal = ending
            raise

    def _issue(self, args: Any, point_to_point: bool) -> None:
        calls, known = self._calls, self._known
        said = hooked(args)
        if said is None:
            return
        calls.settle()
        begun = calls.here.begun
        for outer in begun:
            outer.issuing.unmark()  # this one is called for by a hook, and no part of that one
        backend = known.backend_of(said.device_type)
        before = known.number()
        sequence = known.sequence(before, point_to_point)
        known.operations += 1
        shown = said.shown() if known.reporter.shows else None
        issuing = known.reporter.issue(said.call(sequence, before + 1, backend), backend in ENDS_KNOWN, shown)
        begun.append(_Begun(self, args.op_id, issuing, backend, _depth()))

    def post(self, args: Any) -> None:
        calls = self._calls
        try:
            here = calls.here
            place = next((i for i, one in enumerate(here.begun) if one.group is self and one.op_id == args.op_id), None)
            if place is None:
                return
            calls.end_from(place + 1, _NO_POST)
            one = here.begun.pop()
            operation = one.issuing.operation
            one.issuing.returned(args.work)
            followed = calls.works.follow(args.work, operation, one.backend)
            if not followed and not here.in_methods:
                calls.works.lost(operation)
            here.taken, here.ends_by_wait = (operation if one.backend in ENDS_KNOWN else None), not followed
        except Exception as error:
            calls.failed(error)


def _depth() -> int:
    """How deep the caller of PyTorch's function stands in this thread's stack, counted from the hook."""
    depth = 0
    frame = sys._getframe(1)
    while frame is not None:
        depth += frame.f_globals.get("__name__") != __name__
        frame = frame.f_back  # type: ignore[assignment]
    return depth
