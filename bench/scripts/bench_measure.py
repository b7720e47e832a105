"""What did the benchmark program measure, and which repetitions may be compared?

Shared by the tools that judge, draw and compare. A repetition stands between two core-to-core probes. Virtual cores
are moved by their host without a word, so repetitions are compared within one class of that probe: S (two threads of
one core), N (neighbours) or F (far apart). One whose probes disagree was moved while it ran, and is left out.
"""

import json
import statistics

# Below the first: S; from the second on: F. Nanoseconds one way, for x86 servers of 2020 and later.
CLASS_LIMITS_NS = (28.0, 130.0)
PROBES_AGREE = 1.25
ENOUGH = 5
JUDGED = ("N", "F")


class Missing(Exception):
    """There are not enough repetitions of a case in a class."""


class Absent(Exception):
    """The case was not built: a peer whose library is not here."""


def class_of(before_ns, after_ns, limits=CLASS_LIMITS_NS):
    """The class that both probes agree on, or None. Without a second core there is none: 'single'."""
    if before_ns == 0 and after_ns == 0:
        return "single"
    low, high = sorted((before_ns, after_ns))
    if low <= 0 or high / low > PROBES_AGREE:
        return None
    classes = {("S" if ns < limits[0] else "N" if ns < limits[1] else "F") for ns in (low, high)}
    return classes.pop() if len(classes) == 1 else None


def repetitions(report):
    """Those of one Google Benchmark report: (case, figures) pairs; figures hold 'fault' where it failed."""
    skipped = ("iterations", "real_time", "cpu_time", "repetitions", "repetition_index", "threads",
               "family_index", "per_family_instance_index")
    for run in report.get("benchmarks", ()):
        if run.get("run_type", "iteration") != "iteration":
            continue
        case = run["name"].split("/iterations:")[0]
        if run.get("error_occurred"):
            yield case, {"fault": run.get("error_message", "failed")}
            continue
        yield case, {key: value for key, value in run.items()
                     if isinstance(value, (int, float)) and key not in skipped}


class Measures:
    """All kept repetitions of a run, by case and class."""

    def __init__(self, limits=CLASS_LIMITS_NS):
        self.limits = limits
        self.kept = {}  # case -> class -> list of figures
        self.seen = {}  # case -> how often it ran
        self.faults = []
        self.built = set()

    def add(self, report, disturbed=False):
        """Adds a report; from a disturbed process only the faults are kept."""
        for case, figures in repetitions(report):
            self.built.add(case)
            self.seen[case] = self.seen.get(case, 0) + 1
            if "fault" in figures:
                self.faults.append(f"{case}: {figures['fault']}")
                continue
            placed = class_of(figures.get("c2c_before_ns", 0), figures.get("c2c_after_ns", 0), self.limits)
            if disturbed:
                continue
            figures["c2c_ns"] = (figures.get("c2c_before_ns", 0) + figures.get("c2c_after_ns", 0)) / 2
            self.kept.setdefault(case, {}).setdefault(placed or "moved", []).append(figures)

    def of(self, case, placed):
        """The repetitions of a case in a class; placed None: wherever it ran. One without a class counts in every class."""
        by_class = self.kept.get(case, {})
        if placed is not None and set(by_class) != {"single"}:
            return by_class.get(placed, [])
        return [figures for group in by_class.values() for figures in group]

    def values(self, case, placed, figure="value"):
        if case not in self.built:
            raise Absent(case)
        found = [figures[figure] for figures in self.of(case, placed) if figure in figures]
        if len(found) < ENOUGH:
            raise Missing(f"{case}: {len(found)} of {ENOUGH} repetitions")
        return found

    def classes(self):
        """All that occurred, the judged ones first."""
        found = {placed for by_class in self.kept.values() for placed in by_class} - {"moved"}
        return sorted(found, key=lambda placed: (placed not in JUDGED, placed))

    def commonest(self, case):
        counts = {placed: len(group) for placed, group in self.kept.get(case, {}).items() if placed != "moved"}
        return max(counts, key=counts.get) if counts else None

    def summary(self):
        """For the result file: case -> class -> figure -> its spread."""
        table = {}
        for case, by_class in sorted(self.kept.items()):
            for placed, group in by_class.items():
                names = {name for figures in group for name in figures}
                table.setdefault(case, {})[placed] = {
                    name: spread([figures[name] for figures in group if name in figures]) for name in sorted(names)}
        return table


def spread(values):
    ordered = sorted(values)
    return {"n": len(ordered), "median": statistics.median(ordered), "min": ordered[0], "max": ordered[-1],
            "p10": tenth(ordered), "p25": ordered[(len(ordered) - 1) // 4], "p75": ordered[-1 - (len(ordered) - 1) // 4]}


def tenth(values):
    return sorted(values)[int(0.1 * (len(values) - 1) + 0.5)]


class InClass:
    """What the rows are computed from: figures of one class, or of all where placement plays no part."""

    def __init__(self, measures, placed):
        self.measures, self.placed = measures, placed

    def median(self, case, figure="value"):
        return statistics.median(self.measures.values(case, self.placed, figure))

    def quietest(self, case, figure):
        """The lowest: stalls of the host only ever add."""
        return min(self.measures.values(case, self.placed, figure))

    def quarter(self, case, figure):
        """The lower quartile: half of all repetitions may have a stall that is longer than what they ask about."""
        values = sorted(self.measures.values(case, self.placed, figure))
        return values[(len(values) - 1) // 4]

    def evenness(self, case):
        """p10 over the median of repetitions: 1 when all are alike, low when there are two modes."""
        values = self.measures.values(case, self.placed)
        return tenth(values) / statistics.median(values)

    def built(self, case):
        return case in self.measures.built


class Wanted(InClass):
    """Stands in for the figures: answers 1 to everything, and remembers which cases a row asks for."""

    def __init__(self):
        super().__init__(None, None)
        self.cases = set()

    def median(self, case, figure="value"):
        self.cases.add(case)
        return 1.0

    def quietest(self, case, figure):
        return self.median(case, figure)

    def quarter(self, case, figure):
        return self.median(case, figure)

    def evenness(self, case):
        return self.median(case)

    def built(self, case):
        self.cases.add(case)
        return True


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)
