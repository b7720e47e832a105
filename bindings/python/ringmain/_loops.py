"""Steps, micro-batches and phases of training loops that others run: what the callbacks of ringmain.lightning and
ringmain.transformers do. It needs neither of the two: their classes put it before the base that each of them wants.

Nothing of ours is raised into the training: the first error is logged, all are counted.
"""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from . import _check, _native

_log = logging.getLogger("ringmain")
_NOTHING_OPEN: dict[str, Any] = {"_step": None, "_micro_batch": None, "_phase": None}
Method = TypeVar("Method", bound=Callable[..., None])


def _kept_away(method: Method) -> Method:
    """A method that raises nothing, and answers None, as both packages want it."""

    @functools.wraps(method)
    def call(self: Loop, *arguments: Any, **named: Any) -> None:
        try:
            method(self, *arguments, **named)
        except Exception as error:
            self._count(error)

    return call  # type: ignore[return-value]


class Loop:
    """What is open of a loop: a step, in it perhaps a micro-batch, in that perhaps a phase. With one end those inside it."""

    def __init__(self, bus: Any = None, *, phases: bool = True) -> None:
        """bus: None is Bus.process(), of each process in which the training runs."""
        from . import Bus

        super().__init__()  # of the package's base
        if bus is not None:
            _check.instance("bus", bus, Bus, "a ringmain.Bus, or None for the process's")
        self._phases = _check.flag("phases", phases)
        self._given_bus = bus
        self._step: _native.StepScope | None = None
        self._micro_batch: _native.StepScope | None = None
        self._phase: _native.StepScope | None = None
        self.errors = 0
        self.last_error = ""

    @property
    def bus(self) -> Any:
        from . import Bus

        return Bus.process() if self._given_bus is None else self._given_bus

    def __getstate__(self) -> dict[str, Any]:
        """For packages that send their callbacks to the processes that train: what is open stays here."""
        if self._given_bus is not None:
            raise TypeError(f"{type(self).__name__} of a bus of your own cannot be sent to another process; leave the bus out, and it "
                            "takes Bus.process() there")
        return self.__dict__ | _NOTHING_OPEN

    def __copy__(self) -> Any:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__ | _NOTHING_OPEN)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = memo[id(self)] = self.__copy__()
        memo[id(self._given_bus)] = self._given_bus  # a bus has no copy
        made.__dict__.update(copy.deepcopy(made.__dict__, memo))
        return made

    def _count(self, error: Exception) -> None:
        self.errors += 1
        self.last_error = f"{type(error).__name__}: {error}"
        if self.errors == 1:
            _log.warning("the steps of %s: %s; further errors are only counted", type(self).__name__, self.last_error)

    def _begin(self, **what: Any) -> _native.StepScope:
        scope: _native.StepScope = self.bus.step(**what)
        scope.__enter__()
        return scope

    def _begin_step(self, number: int, micro_batch: int | None = None) -> None:
        self._end_step()
        self._step = self._begin(number=number)
        if micro_batch is not None:
            self._begin_micro_batch(micro_batch)

    def _begin_micro_batch(self, number: int) -> None:
        self._end_micro_batch()
        self._micro_batch = self._begin(micro_batch=number)

    def _begin_phase(self, name: str) -> None:
        self._end_phase()
        if self._phases and self._step is not None:
            self._phase = self._begin(phase=name)

    def _end_phase(self) -> None:
        phase, self._phase = self._phase, None
        self._end(phase)

    def _end_micro_batch(self) -> None:
        self._end_phase()
        micro_batch, self._micro_batch = self._micro_batch, None
        self._end(micro_batch)

    def _end_step(self) -> None:
        self._end_micro_batch()
        step, self._step = self._step, None
        self._end(step)

    def _end(self, scope: _native.StepScope | None) -> None:
        if scope is not None:
            try:
                scope.__exit__(None, None, None)
            except RuntimeError as error:  # of another thread or process; what is around it ends here all the same
                self._count(error)


class LightningLoop(Loop):
    """A step is what Lightning counts as `trainer.global_step`, with accumulated batches as its micro-batches from 1."""

    @_kept_away
    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        accumulated = int(getattr(trainer, "accumulate_grad_batches", 1) or 1)
        if self._step is None:
            self._number, self._batches = int(trainer.global_step), 0
            self._begin_step(self._number)
        self._batches += 1
        if accumulated > 1:
            self._begin_micro_batch(self._batches)
        self._accumulated = accumulated
        self._begin_phase("forward")

    @_kept_away
    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        self._begin_phase("backward")

    @_kept_away
    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        self._end_phase()

    @_kept_away
    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self._begin_phase("optimizer")

    @_kept_away
    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._end_micro_batch()
        if self._step is not None and (self._accumulated == 1 or int(trainer.global_step) != self._number):
            self._end_step()

    @_kept_away
    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._end_step()

    @_kept_away
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end_step()


class HuggingFaceLoop(Loop):
    """A step is what the Trainer counts as `state.global_step`, with accumulated batches as its micro-batches from 1."""

    @_kept_away
    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        accumulates = int(getattr(args, "gradient_accumulation_steps", 1)) > 1
        self._begin_step(int(state.global_step), 1 if accumulates else None)
        self._batches = 1

    @_kept_away
    def on_substep_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self._step is not None:
            self._batches += 1
            self._begin_micro_batch(self._batches)

    @_kept_away
    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._begin_phase("optimizer")

    @_kept_away
    def on_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._end_phase()

    @_kept_away
    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._end_step()

    @_kept_away
    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._end_step()  # of a training that raised

    @_kept_away
    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._end_step()
