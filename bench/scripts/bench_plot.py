#!/usr/bin/env python3
"""What do the figures of a run look like?

usage: bench_plot.py RESULT.json FOLDER
Writes latency.svg (distribution), load.svg (latency against load), publishers.svg (throughput against publishing
threads), subscribers.svg (cost against subscribers) and peers.svg: the placement class in which most cases ran.
Exit codes: 0 written, 2 wrong use, 77 matplotlib is not here.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from bench_measure import read_json
from bench_table import number

OURS = {"bus_moodycamel": ("#1f5fa8", "ringmain, moodycamel lane"), "bus_ring": ("#c2410c", "ringmain, ring lane"),
        "bus_inline": ("#15803d", "ringmain, inline")}
RAW = {"raw_moodycamel": ("#7fa8d6", "raw moodycamel"), "raw_ring": ("#f0a878", "raw ring"),
       "raw_segmented": ("#b0b0b0", "raw segmented ring")}
GREY = "#8a8a8a"
OTHERS = ("#6b7280", "#9333ea", "#0d9488", "#a16207", "#be185d", "#4d7c0f", "#334155", "#0369a1")
QUANTILES = (("p10", 0.1), ("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999))


class Figures:
    """Medians by case, in the placement class in which most cases ran; in another one only where a case has none in it."""

    def __init__(self, result):
        kept = {case: {placed: one for placed, one in by_class.items() if placed != "moved" and "value" in one}
                for case, by_class in result["cases"].items()}
        self.placed = Counter(placed for groups in kept.values() for placed in groups if placed != "single").most_common(1)
        self.placed = self.placed[0][0] if self.placed else "single"
        self.by_case = {}
        for case, groups in kept.items():
            if groups:
                placed = max(groups, key=lambda name: (name == self.placed, groups[name]["value"]["n"]))
                self.by_case[case] = (placed, groups[placed])

    def elsewhere(self, case):
        """The class that a case ran in, if that is not the plot's: such a case is shown with its class's name."""
        placed = self.by_case[case][0]
        return "" if placed in (self.placed, "single") else placed

    def get(self, case, figure="value", what="median"):
        found = self.by_case.get(case, (None, {}))[1].get(figure)
        return found[what] if found else None

    def along(self, question, contender, axis, figure="value"):
        """(axis value, median) pairs in rising order."""
        pattern = re.compile(rf"{question}/{re.escape(contender)}/{axis}:(\d+)$")
        found = [(int(match[1]), self.get(case, figure)) for case in self.by_case
                 if (match := pattern.match(case)) and not self.elsewhere(case)]
        return sorted((x, y) for x, y in found if y is not None)

    def contenders(self, question, at=""):
        """contender -> (value, another class or "") at one point of the axes."""
        found = {}
        for case in self.by_case:
            parts = case.split("/")
            if parts[0] == question and "/".join(parts[2:]) == at:
                found[parts[1]] = (self.get(case), self.elsewhere(case))
        return {name: pair for name, pair in found.items() if pair[0]}


def colour(contender):
    if contender.endswith("_standard"):
        shade, label = colour(contender.removesuffix("_standard"))
        return shade, label + ", as a user gets it"
    return {**OURS, **RAW}.get(contender, (GREY, contender.replace("_", " ")))


def draw_lines(axes, figures, question, axis, scale=1.0):
    """One line for each contender of a question along one of its axes: ours in colour and thick, first."""
    names = sorted({case.split("/")[1] for case in figures.by_case if case.startswith(question + "/")},
                   key=lambda name: (name not in OURS, name))
    for index, name in enumerate(names):
        points = [(x, y * scale) for x, y in figures.along(question, name, axis)]
        shade, label = colour(name)
        if points:
            axes.plot(*zip(*points), marker="os^vDPX*"[index % 8], ms=4, lw=2 if name in OURS else 1, label=label,
                      color=OTHERS[index % len(OTHERS)] if shade == GREY else shade)
    axes.grid(alpha=0.3, which="both")


def draw_latency(plot, figures):
    """How many events took longer than a given time: at 100 k/s on the left, 1 M/s on the right."""
    figure, sides = plot.subplots(1, 2, figsize=(11, 4.2), sharey=True)
    for side, (rate, word) in zip(sides, ((100000, "100 k/s"), (1000000, "1 M/s"))):
        for contender in (*RAW, *OURS):
            case = f"latency/{contender}/per_second:{rate}"
            if case not in figures.by_case or figures.elsewhere(case):
                continue
            points = [(figures.get(case, name), 1 - share) for name, share in QUANTILES]
            points = [(x, y) for x, y in points if x]
            if points:
                shade, label = colour(contender)
                side.plot(*zip(*points), marker="o", ms=3, color=shade, label=label)
        side.set(xscale="log", yscale="log", xlabel="nanoseconds from publish to callback", title=f"open loop, {word}")
        side.grid(alpha=0.3, which="both")
    sides[0].set_ylabel("share of events that took longer")
    return figure, sides


def draw_load(plot, figures):
    figure, axes = plot.subplots(figsize=(7, 4.2))
    for contender, style in (("raw_moodycamel", "-"), ("raw_ring", "-"), ("bus_moodycamel", "-"), ("bus_ring", "-"),
                             ("bus_moodycamel_standard", "--"), ("bus_ring_standard", "--")):
        points = figures.along("latency", contender, "per_second", "p50")
        if points:
            shade, label = colour(contender)
            axes.plot(*zip(*points), style, marker="o", ms=3, color=shade, label=label)
    axes.set(xscale="log", yscale="log", xlabel="events a second, open loop", ylabel="p50, nanoseconds")
    axes.grid(alpha=0.3, which="both")
    return figure, [axes]


def draw_publishers(plot, figures):
    figure, axes = plot.subplots(figsize=(7, 4.2))
    draw_lines(axes, figures, "publishers", "publishers", 1e-6)
    axes.set(xscale="log", yscale="log", xlabel="publishing threads", ylabel="million events a second")
    axes.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))  # lines go everywhere
    return figure, []


def draw_subscribers(plot, figures):
    """On the worker on the left; in the publishing thread on the right."""
    figure, sides = plot.subplots(1, 2, figsize=(11, 4.2))
    for side, question, title in ((sides[0], "dispatch", "on a worker, for each event"),
                                  (sides[1], "inline", "in the publishing thread, for each publish")):
        draw_lines(side, figures, question, "subscribers")
        side.set(xlabel="subscribers", ylabel="nanoseconds", yscale="log", title=title, xticks=(0, 1, 4, 16))
    return figure, sides


def name_decades(axis, span):
    """Labels that do not run into each other: of tens only, or between them where there are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if span < 50 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_formatter(NullFormatter())


def draw_peers(plot, figures):
    """Four figures by which peers differ most."""
    panels = (("publish_live", "", "publish in a burst, ns"), ("wake", "", "asleep: publish to callback, ns"),
              ("latency", "per_second:100000", "awake or parked, 100 k/s: p50, ns"),
              ("throughput", "payload_bytes:32", "throughput, events a second"))
    figure, grid = plot.subplots(2, 2, figsize=(12, 8.5))
    for side, (question, at, title) in zip(grid.flat, panels):
        dots = sorted(((value, *colour(name), placed) for name, (value, placed) in
                       figures.contenders(question, at).items()), reverse=question != "throughput")
        for height, (value, shade, _, placed) in enumerate(dots):
            side.plot(value, height, "o", color=shade, fillstyle="none" if placed else "full")
            side.annotate(number(value) + (f" in {placed}" if placed else ""), (value, height), (7, -3), textcoords="offset points", fontsize=7)
        if dots:
            values = [value for value, *_ in dots]
            side.set(xscale="log", xlim=(min(values) / 2, max(values) * 4), yticks=range(len(dots)))
            side.set_yticklabels([label for _, _, label, _ in dots], fontsize=8)
            name_decades(side.xaxis, max(values) / min(values))
        side.set_title(title)
        side.grid(alpha=0.3)
    return figure, []


DRAWINGS = {"latency": draw_latency, "load": draw_load, "publishers": draw_publishers,
            "subscribers": draw_subscribers, "peers": draw_peers}


def draw_all(result, folder, suffix="svg"):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figures = Figures(result)
    machine = result["machine"]
    note = (f"{machine.get('cpu', '')}, {machine.get('cpus', '?')} CPUs; commit {machine.get('commit') or 'unknown'}; "
            f"placement class {figures.placed}")
    if machine.get("busy_machine"):
        note += "; other programs ran meanwhile: no figures"
    for name, drawing in DRAWINGS.items():
        figure, legends = drawing(pyplot, figures)
        for axes in legends:
            if axes.get_legend_handles_labels()[1]:
                axes.legend(fontsize=7)
        figure.text(0.01, 0.005, note, fontsize=6, color=GREY)
        figure.tight_layout(rect=(0, 0.02, 1, 1))
        figure.savefig(Path(folder) / f"{name}.{suffix}")
        pyplot.close(figure)


def main():
    if len(sys.argv) not in (3, 4):
        print(__doc__.strip().split("\n\n")[1], file=sys.stderr)
        return 2
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("matplotlib is not here; on Debian: apt-get install python3-matplotlib", file=sys.stderr)
        return 77
    draw_all(read_json(sys.argv[1]), sys.argv[2], *sys.argv[3:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
