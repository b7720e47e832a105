"""What is a row of figures, and when is it met?

A row has parts; each is a ratio to something measured in the same run (or a plain figure where the target is one),
with a target, a side to be on, and a margin for noise. All judged placement classes must hold. The row's own value
is that of its worst part.
"""

import dataclasses
from typing import Callable

from bench_measure import JUDGED, Absent, InClass, Missing, Wanted

NOISE = 0.15
NOISE_THROUGHPUT = 0.30
FAR = 1e6
MET, MISSED, INCONCLUSIVE, SKIPPED = "met", "missed", "inconclusive", "skipped"


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    unit: str
    side: str  # "<=" or ">="
    target: float
    compute: Callable
    margin: float = NOISE
    by_class: bool = True
    # What the bare reference reads in the same unit: if even that misses the target, this machine cannot tell.
    floor: Callable = None

    def cases(self):
        wanted = Wanted()
        self.compute(wanted)
        if self.floor:
            self.floor(wanted)
        return wanted.cases

    def excess(self, value):
        """1 on the target, above 1 on the wrong side, at most FAR: JSON knows no infinity."""
        if self.target == 0:
            return 0.0 if value <= 0 else FAR
        if self.side == "<=":
            return min(value / self.target, FAR)
        return min(self.target / value, FAR) if value > 0 else FAR

    def judge(self, measures):
        classes = [placed for placed in measures.classes() if placed in JUDGED] if self.by_class else [None]
        results, reason, beyond = [], "no repetition in class N or F", ""
        for placed in classes:
            try:
                value = self.compute(InClass(measures, placed))
                floor = self.floor(InClass(measures, placed)) if self.floor else None
            except Absent as absent:
                return self.result(SKIPPED, reason=f"{absent} was not built")
            except Missing as missing:
                reason = str(missing)
                continue
            if floor is not None and self.excess(floor) > 1:
                beyond = f"{value:.2f} here, and the bare reference itself reads {floor:.2f} {self.unit}"
                continue
            results.append((self.excess(value), value, placed))
        if not results and beyond:
            return self.result(SKIPPED, reason=beyond)
        if not results:
            return self.result(INCONCLUSIVE, reason=reason)
        excess, value, placed = max(results, key=lambda one: one[0])
        return self.result(MET if excess <= 1 + self.margin else MISSED, value, placed, excess)

    def result(self, verdict, value=None, placed=None, excess=None, reason=None):
        return {"part": self.name, "value": value, "unit": self.unit, "target": f"{self.side} {self.target:g}",
                "margin": self.margin, "verdict": verdict, "class": placed, "excess": excess, "reason": reason,
                "within_margin": verdict == MET and excess is not None and excess > 1}


@dataclasses.dataclass(frozen=True)
class Row:
    id: str
    question: str
    parts: tuple

    def judge(self, measures):
        parts = [part.judge(measures) for part in self.parts]
        verdicts = [part["verdict"] for part in parts]
        verdict = next((v for v in (MISSED, INCONCLUSIVE, MET) if v in verdicts), INCONCLUSIVE)
        valued = [part for part in parts if part["excess"] is not None]
        worst = max(valued, key=lambda part: part["excess"], default=parts[0])
        return {"id": self.id, "question": self.question, "value": worst["value"], "unit": worst["unit"],
                "target": worst["target"], "verdict": verdict, "part": worst["part"], "class": worst["class"],
                "parts": parts}


def exit_status(rows, faults=()):
    """0: all met. 1: a row missed, or something went wrong. 3: some inconclusive."""
    verdicts = [row["verdict"] for row in rows]
    if faults or MISSED in verdicts:
        return 1
    return 3 if INCONCLUSIVE in verdicts else 0
