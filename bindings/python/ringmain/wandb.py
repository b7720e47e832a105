"""Figures of events as a W&B run's: `ringmain.wandb.WandbSink("train.>", run=wandb.init(…))`.

Beside a step of training stands the mean of each figure in it: `train.step/took_ns`, `train.step/forward/took_ns`,
`collective.completed/all_reduce/duration_ns`, and how many events there were, `…/events`; the axis is `ringmain/step`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _check, _measures, _native
from ._extra import need
from ._sink import Sink, SinkStats, check_method, log
from ._types import name_text

STEP = "ringmain/step"
_NONE = -1  # in no step: given each time, beside the newest step
_UNKNOWN = object()  # where a run is that does not say so
POINTS_MAX = 4096  # steps that are kept for the next time they are given


class _Key(NamedTuple):
    title: str
    figure: str  # "": how many events there were

    def __str__(self) -> str:
        # A field may be named so too.
        return f"{self.title}/{'events/value' if self.figure == 'events' else self.figure or 'events'}"


class _Sums:
    """Of figures: what they come to, and of how many values."""

    def __init__(self) -> None:
        self.of: dict[_Key, tuple[float, int]] = {}

    def add(self, key: _Key, total: float, count: int) -> None:
        before = self.of.get(key, (0.0, 0))
        self.of[key] = (before[0] + total, before[1] + count)

    def join(self, other: _Sums) -> None:
        for key, (total, count) in other.of.items():
            self.add(key, total, count)

    def row(self) -> dict[str, float]:
        """Events are a sum, and figures means."""
        return {str(key): total / count if key.figure else total for key, (total, count) in self.of.items()}


class WandbSink(Sink):
    """Gives the figures of events to a W&B run, at most each `every` seconds, from a thread of its own. Threads: any."""

    def __init__(self, what: str | Iterable[str], *, run: Any = None, bus: Any = None, fields: Mapping[str, Sequence[str]] | None = None,
                 every: float = 2.0, commit: bool = False, queue_events: int = 65536) -> None:
        """what: a pattern or several. run: None is wandb.run. fields: for a channel, which fields are figures, in place of those with a
        unit or a fraction. every: seconds between two looks at which steps are complete; without commit, what a row says is of all
        that came since the row before, so that longer means fewer values, each the mean over more steps, and not that any are left out.

        commit: True gives each step a row: for a run that nobody else logs to, or not with step=, because W&B then refuses the
        program's own rows. False joins the means over all steps since to the row that the program logs next. RuntimeError: there is
        no run. ImportError: no run was given, and wandb is not installed.
        """
        self._commit = _check.flag("commit", commit)
        self._chosen = _fields_of(fields)
        self._run_of = _run_of_program() if run is None else run
        check_method("run", self._run_of, "log", "what wandb.init() gave, or None for wandb.run")
        if self._commit:
            check_method("run", self._run_of, "define_metric", "what wandb.init() gave, or None for wandb.run")
        self._shapes: dict[tuple[str, int], _measures.Shape] = {}
        self._points: dict[int, _Sums] = {}
        self._shown, self._shown_at = _Sums(), _UNKNOWN  # what W&B's open row has from us, and which row that is
        self._newest = _NONE
        self._rows_before = self._row_number()
        super().__init__(what, bus, title="wandb sink", every=every, queue_events=queue_events)
        self._follow = self.bus.follow_steps()
        self._start()

    def _prepare(self) -> None:
        if self._commit:
            self._run_of.define_metric(STEP, hidden=True)

    def _shape_of(self, batch: _native.Batch) -> _measures.Shape:
        shape = _measures.Shape(batch._layout, self._chosen.get(batch.channel))
        if self._commit:
            self._guarded(lambda: self._run_of.define_metric(f"{batch.channel}/*", step_metric=STEP))
        return shape

    def _take(self, batch: _native.Batch) -> None:
        key = (batch.channel, batch._layout.hash)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = self._shape_of(batch)
        array = batch.array
        kept = shape.at_edge(array, "end")
        rows = array[kept]
        if not len(rows):
            return
        steps = rows["step"].astype(np.int64) if shape.has_step else self._steps_of(batch)[kept]
        kinds = rows[shape.kind_of] if shape.kind_of else np.zeros(len(rows), np.uint32)
        self._newest = max(self._newest, int(steps.max()))
        pairs, group = np.unique(np.stack([steps, kinds.astype(np.int64)]), axis=1, return_inverse=True)
        group = group.reshape(-1)
        titles = [self._title_of(batch.channel, shape, int(kind)) for kind in pairs[1]]
        self._add(pairs[0], titles, "", np.bincount(group), np.bincount(group))
        for figure in shape.figures:
            values = rows[figure.name]
            known = _measures.known(figure, values)
            if values.dtype.kind == "f":
                self._left_out += int(np.count_nonzero(~known))
            sums = np.bincount(group[known], weights=values[known].astype(np.float64), minlength=len(titles))
            self._add(pairs[0], titles, figure.name, sums, np.bincount(group[known], minlength=len(titles)))
        if len(self._points) > POINTS_MAX:
            self._flush(False)

    def _steps_of(self, batch: _native.Batch) -> np.ndarray[Any, Any]:
        """In which step each was published, or _NONE."""
        places = self._follow.of(batch)
        return np.where(places["inside"], places["step"].astype(np.int64), _NONE)

    def _title_of(self, channel: str, shape: _measures.Shape, kind: int) -> str:
        word = name_text(kind) if shape.kind_of else ""
        return f"{channel}/{word}" if word else channel

    def _add(self, steps: Any, titles: list[str], name: str, sums: Any, counts: Any) -> None:
        for step, title, total, count in zip(steps.tolist(), titles, sums.tolist(), counts.tolist(), strict=True):
            if count:
                self._points.setdefault(step, _Sums()).add(_Key(title, name), total, count)

    def _row_number(self) -> Any:
        """How many rows the run has, or _UNKNOWN: runs that several processes share do not say."""
        try:
            return getattr(self._run_of, "step", _UNKNOWN)
        except Exception:
            return _UNKNOWN

    def _flush(self, last: bool) -> None:
        """The newest step is kept back: more may come of it."""
        ready = sorted(step for step in self._points if last or step == _NONE or step < self._newest)
        points = [(step, self._points.pop(step)) for step in ready]
        if self._commit:
            for step, sums in points:
                self._guarded(self._log, self._newest if step == _NONE else step, sums)
        elif points:
            self._join_open_row([step for step in ready if step != _NONE], [sums for _, sums in points])
        if last:
            self._follow.close()
            if not self._commit and self._given > 1 and self._rows_before == self._row_number() is not _UNKNOWN:
                log.warning("%s: nobody logged a row to the W&B run so far, so that one has the means over all steps; commit=True gives each its own",
                            self._title)

    def _join_open_row(self, steps: list[int], of_each: list[_Sums]) -> None:
        """A value that is given again takes the place of the one before, unless the program logged a row in between."""
        row_number = self._row_number()
        if row_number is _UNKNOWN or row_number != self._shown_at:
            self._shown = _Sums()
        for sums in of_each:
            self._shown.join(sums)
        self._guarded(self._log, steps[-1] if steps else self._newest, self._shown)
        self._shown_at = self._row_number()
        # The program logged meanwhile: is it in the row that was, or in the one that is open? Twice is better than in none.
        if steps and self._shown_at is not row_number and self._shown_at != row_number and self._is_logged(steps[-1]):
            self._shown = _Sums()

    def _is_logged(self, step: int) -> bool:
        """Did a row with that step leave the run? Its summary has the newest."""
        try:
            return bool(self._run_of.summary.get(STEP) == step)
        except Exception:
            return False

    def _log(self, step: int, sums: _Sums) -> None:
        row = sums.row()
        if step != _NONE:
            row[STEP] = step
        if self._commit:
            self._run_of.log(row)
        else:
            self._run_of.log(row, commit=False)
        self._given += 1


def _run_of_program() -> Any:
    wandb = need("wandb", "WandbSink", "ringmain[wandb]")
    if not hasattr(wandb, "init"):  # a folder wandb beside the program, as W&B leaves it, is a package to Python
        raise ImportError("WandbSink needs wandb, which is not installed: pip install ringmain[wandb]", name="wandb")
    if wandb.run is None:
        raise RuntimeError("there is no W&B run: call wandb.init() before, or give run=")
    return wandb.run


def _fields_of(fields: Any) -> dict[str, list[str]]:
    wrong = TypeError(f"fields is {fields!r}; give a dict of channels and lists of their fields")
    if fields is None:
        return {}
    if not isinstance(fields, Mapping):
        raise wrong
    found = {}
    for channel, names in fields.items():
        if not isinstance(channel, str) or isinstance(names, str) or not isinstance(names, Iterable):
            raise wrong
        found[channel] = list(dict.fromkeys(names))
        if not all(isinstance(name, str) for name in found[channel]):
            raise wrong
    return found


__all__ = ["SinkStats", "WandbSink"]
