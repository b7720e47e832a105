"""Training steps without a line in the loop: a step ends where an optimizer has stepped, and the next one begins there.

PyTorch calls global hooks around each optimizer's step(). One optimizer counts: the one that was named, or the first that steps,
and of one that calls another inside its own step the outer. PyTorch reads its hooks while it calls them, without a lock, so that
they are taken out by the thread that steps, between two steps, or when it is gone; until then removed ones stay, and do nothing.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from types import CodeType, FrameType
from typing import Any

from ringmain import _check, _native

from ._surface import log

_lock = threading.Lock()
_active: OptimizerSteps | None = None
_left: list[tuple[int, Any]] = []  # of removed ones: the thread that steps, 0 where none has, and the handle of a hook


@functools.cache
def _around_steps() -> CodeType:
    """What PyTorch puts around each optimizer's step(), and calls the hooks from."""
    from torch.optim import Optimizer

    code: CodeType = Optimizer.profile_hook_step(lambda self: None).__code__
    return code


def _inside_a_step() -> bool:
    """Is an optimizer in its step() in this thread? PyTorch may be in the middle of its hooks then."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not _around_steps():
        frame = frame.f_back
    return frame is not None


def _take_out() -> None:
    """The hooks of removed ones, as far as nobody reads them now."""
    if _inside_a_step():
        return
    with _lock:
        others = sys._current_frames().keys() - {threading.get_ident()}
        free = [handle for thread, handle in _left if thread not in others]
        _left[:] = [(thread, handle) for thread, handle in _left if thread in others]
    for handle in free:
        handle.remove()


def _inside_its_own_step(called_by: FrameType, optimizer: Any) -> bool:
    """A class whose step() calls that of its base gets the hooks twice. Looked for on the stack, because a step() that raises
    gets no second hook."""
    frame = called_by.f_back
    while frame is not None:
        if frame.f_code is called_by.f_code and frame.f_locals.get("self") is optimizer:
            return True
        frame = frame.f_back
    return False


class OptimizerSteps:
    """Steps of a bus that an optimizer's step() ends, until remove(), or as a context manager."""

    def __init__(self, bus: Any, optimizer: Any, first: int, gives_way: bool) -> None:
        self._bus, self._gives_way = bus, gives_way
        self._optimizer = None if optimizer is None else weakref.ref(optimizer)
        self._number = first
        self._open = threading.local()  # a step ends in the thread that began it, at the latest with it
        self._stepped_in = 0  # the optimizer's thread
        self._handles: list[Any] = []
        self._removed = False
        self.steps = 0
        self.errors = 0
        self.last_error = ""

    @property
    def optimizer(self) -> Any:
        """The one that counts; None until one has stepped, or when it is gone."""
        return self._optimizer() if self._optimizer is not None else None

    def remove(self) -> None:
        """No step ends by it any more, and the one that this thread has open ends here. May be called again.

        Call it from the thread that trains. Removed by another one, the step that is open ends with the next optimizer.step() of the
        thread that trains, or with that thread.
        """
        global _active
        with _lock:
            if _active is self:
                _active = None
            self._removed = True
            _left.extend((self._stepped_in, handle) for handle in self._handles)
            self._handles = []
        _take_out()
        self._end()

    def _opened(self) -> tuple[_native.StepScope | None, int]:
        """What this thread has open, and its number."""
        return getattr(self._open, "step", (None, 0))

    def _begin(self) -> None:
        scope = self._bus.step(self._number)
        scope.__enter__()
        self._open.step = scope, self._number
        if self._removed:  # by an inline subscriber that just heard it
            self._end()

    def _end(self) -> None:
        scope, _ = self._opened()
        self._open.step = None, 0
        if scope is not None:
            try:
                scope.__exit__(None, None, None)
            except RuntimeError as error:  # of another process
                log.debug("a step of the optimizer's was left open: %s", error)

    def _before(self, optimizer: Any) -> None:
        if self.optimizer is None:  # none yet, or it is gone, as where a program makes a new one
            self._optimizer = weakref.ref(optimizer)
        if self.optimizer is not optimizer:
            return
        self._stepped_in = threading.get_ident()
        scope, number = self._opened()
        if scope is not None and number != self._number:  # other threads have stepped since
            self._end()
        if scope is None or number != self._number:
            self._begin()

    def _after(self, optimizer: Any) -> None:
        if self.optimizer is not optimizer or self._opened()[0] is None:
            return
        self._end()
        self.steps += 1
        self._number += 1
        self._begin()

    def _call(self, what: Any, optimizer: Any, called_by: FrameType) -> None:
        """Nothing of ours is raised into the training."""
        if self._bus.closed or self._bus.forked:
            return
        try:
            if self._removed:
                self._end()
            elif not _inside_its_own_step(called_by, optimizer):
                what(optimizer)
        except Exception as error:
            self.errors += 1
            self.last_error = f"{type(error).__name__}: {error}"
            if self.errors == 1:
                log.warning("steps from the optimizer: %s; further ones are only counted", error)

    def __repr__(self) -> str:
        of = type(self.optimizer).__name__ if self.optimizer is not None else "the first that steps"
        return f"<steps of {self._bus!r} by {of}: {self.steps}{', removed' if self._removed else ''}>"

    def __enter__(self) -> OptimizerSteps:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def steps_from_optimizer(bus: Any = None, *, optimizer: Any = None, first: int = 0, begin_now: bool = True,
                         _gives_way: bool = False) -> OptimizerSteps:
    """Publishes `train.step` without a line in the loop: the step that is open ends when `optimizer` has stepped, and the next begins.

    optimizer: None is the first that steps; the steps of others are not counted. first: the number of the first step, as of a run
    that goes on from a checkpoint. begin_now: the first step begins here, in this thread; False: just before the optimizer's first
    step(), for training in another thread. What comes after the last optimizer step is a step too, which remove() ends.
    RuntimeError: the steps come from an optimizer already, or one is in its step() in this thread. Threads: call it, and remove(),
    from the one that trains; from another only while no optimizer steps.
    """
    global _active
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    from ringmain import Bus

    _check.whole("first", first, 0, 2**64 - 1)
    _check.flag("begin_now", begin_now)
    if optimizer is not None and not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer is {optimizer!r}; give one of torch.optim.Optimizer, or None for the first that steps")
    if bus is not None:
        _check.instance("bus", bus, Bus, "a ringmain.Bus, or None for the process's")
    if _inside_a_step():
        raise RuntimeError("an optimizer is in its step() here, and PyTorch may be in the middle of its hooks: call this before or after it")
    bus = Bus.process() if bus is None else bus
    _take_out()
    with _lock:
        before = _active
        if before is not None and not before._gives_way and not before._bus.closed:
            raise RuntimeError(f"the steps of {before._bus!r} come from an optimizer already; remove() that first")
        made = _active = OptimizerSteps(bus, optimizer, first, _gives_way)
    if before is not None:
        before.remove()
    if begin_now:
        try:
            made._begin()
        except BaseException:
            made.remove()
            raise

    def ahead(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not torch.compiler.is_compiling():  # of a compiled region: it would be traced
            made._call(made._before, optimizer, sys._getframe(1))

    def behind(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not torch.compiler.is_compiling():
            made._call(made._after, optimizer, sys._getframe(1))

    made._handles = [register_optimizer_step_pre_hook(ahead), register_optimizer_step_post_hook(behind)]
    return made
