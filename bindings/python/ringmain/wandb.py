"""Figures of events as a W&B run's: `ringmain.wandb.WandbSink("train.>", run=wandb.init(…))`.

Beside a step of training stands the mean of each figure in it: `train.step/took_ns`, `train.step/forward/took_ns`,
`collective.completed/all_reduce/duration_ns`, and how many events there were, `…/events`; the axis is `ringmain/step`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _check, _measures, _native
from ._extra import need
from ._sink import Sink, SinkStats, log
from ._types import name_text

STEP = "ringmain/step"
_NONE = -1  # in no step: given each time, beside the newest step
POINTS_MAX = 4096  # steps that are kept for the next time they are given


class WandbSink(Sink):
    """Gives the figures of events to a W&B run, at most each `every` seconds, from a thread of its own. Threads: any."""

    def __init__(self, what: str | Iterable[str], *, run: Any = None, bus: Any = None, fields: Mapping[str, Sequence[str]] | None = None,
                 every: float = 2.0, commit: bool = False, queue_events: int = 65536) -> None:
        """what: a pattern or several. run: None is wandb.run. fields: for a channel, which fields are figures, in place of those with a
        unit or a fraction.

        commit: True gives each step a row: for a run that nobody else logs to, or not with step=, because W&B then refuses the
        program's own rows. False joins the newest step's figures to the row that the program logs next. RuntimeError: there is no
        run. ImportError: no run was given, and wandb is not installed.
        """
        self._commit = _check.flag("commit", commit)
        if fields is not None and not isinstance(fields, Mapping):
            raise TypeError(f"fields is {fields!r}; give a dict of channels and lists of their fields")
        self._chosen = dict(fields or {})
        self._run_of = need("wandb", "WandbSink", "ringmain[wandb]").run if run is None else run
        if self._run_of is None:
            raise RuntimeError("there is no W&B run: call wandb.init() before, or give run=")
        self._shapes: dict[int, _measures.Shape] = {}
        self._points: dict[int, dict[str, list[float]]] = {}
        self._newest = _NONE
        self._rows_before = getattr(self._run_of, "step", None)
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
        layout = batch._layout
        shape = self._shapes.get(layout.hash)
        if shape is None:
            shape = self._shapes[layout.hash] = self._shape_of(batch)
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
        self._add(pairs[0], titles, "events", np.bincount(group), np.ones(len(titles)), counts=True)
        for figure in shape.figures:
            values = rows[figure.name]
            known = _measures.known(figure, values)
            sums = np.bincount(group[known], weights=values[known].astype(np.float64), minlength=len(titles))
            self._add(pairs[0], titles, figure.name if figure.name != "events" else "events/value", sums, np.bincount(group[known], minlength=len(titles)), counts=False)
        if len(self._points) > POINTS_MAX:
            self._flush(False)

    def _steps_of(self, batch: _native.Batch) -> np.ndarray[Any, Any]:
        """In which step each was published, or _NONE."""
        places = self._follow.of(batch)
        return np.where(places["inside"], places["step"].astype(np.int64), _NONE)

    def _title_of(self, channel: str, shape: _measures.Shape, kind: int) -> str:
        word = name_text(kind) if shape.kind_of else ""
        return f"{channel}/{word}" if word else channel

    def _add(self, steps: Any, titles: list[str], name: str, sums: Any, counts_of: Any, *, counts: bool) -> None:
        for step, title, total, count in zip(steps.tolist(), titles, sums.tolist(), counts_of.tolist(), strict=True):
            if count:
                entry = self._points.setdefault(step, {}).setdefault(f"{title}/{name}", [0.0, 0.0])
                entry[0] += total
                entry[1] = 1.0 if counts else entry[1] + count

    def _flush(self, last: bool) -> None:
        """The newest step is kept back: more may come of it."""
        ready = sorted(step for step in self._points if last or step == _NONE or step < self._newest)
        for step in ready if self._commit else [one for one in ready[-1:] if one != _NONE] or ready[-1:]:
            row: dict[str, float] = {key: total / count for key, (total, count) in self._points[step].items()}
            if not self._commit and step != _NONE and _NONE in ready:
                row = {key: total / count for key, (total, count) in self._points[_NONE].items()} | row
            if max(step, self._newest) != _NONE:
                row[STEP] = self._newest if step == _NONE else step
            try:
                if self._commit:
                    self._run_of.log(row)
                else:
                    self._run_of.log(row, commit=False)
                self._given += 1
            except BaseException as error:
                self._refused(error)
        for step in ready:
            del self._points[step]
        if last:
            self._follow.close()
            if not self._commit and self._given > 1 and self._rows_before == getattr(self._run_of, "step", object()):
                log.warning("%s: nobody logged a row to the W&B run, so that one is all there is; commit=True gives each step a row",
                            self._title)


__all__ = ["SinkStats", "WandbSink"]
