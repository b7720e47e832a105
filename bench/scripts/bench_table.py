#!/usr/bin/env python3
"""How do the results of a run read, on a terminal and in docs/performance.md?

usage: bench_table.py RESULT.json [PAGE.md]
Prints the result's tables as Markdown, or puts them into the page between its two marks.
"""

import sys
from pathlib import Path

from bench_measure import read_json

BEGIN, END = "<!-- figures: bench/scripts/bench_table.py -->", "<!-- end of figures -->"


def number(value):
    """Three figures, no exponent."""
    if value is None:
        return "–"
    size = abs(value)
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            scale = {"G": 1e9, "M": 1e6, "k": 1e3}[unit]
            return f"{number(value / scale)} {unit}"
    if size >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.1 else f"{value:.2g}"


def verdict(part):
    """The verdict in words: by how much a target was missed, or why there is none."""
    if part["verdict"] == "missed":
        return f"missed by {100 * (part['excess'] - 1):.0f} %" if part["excess"] < 1e6 else "missed"
    if part["verdict"] == "met" and part["within_margin"]:
        return "met, within noise"
    if part["verdict"] in ("inconclusive", "skipped"):
        return f"{part['verdict']}: {part['reason']}"
    return part["verdict"]


def machine_text(machine):
    words = [f"{machine.get('cpus', '?')} CPUs of {machine.get('cpu', '?')}"
             + (", virtual" if machine.get("virtual") else ""),
             f"Linux {machine.get('kernel', '?')}", f"compiler {machine.get('compiler', '?')} {machine.get('flags', '')}".strip(),
             f"commit {machine.get('commit') or 'unknown'}", machine.get("date", "")[:10]]
    text = "; ".join(word for word in words if word)
    if machine.get("busy_machine"):
        text += f". Other programs took up to {100 * machine.get('others_share', 0):.0f} % meanwhile: these are no figures"
    return text + "."


def rows_text(result):
    lines = []
    for row in result["rows"]:
        lines.append(f"{row['id']:>3}  {row['question']}: {row['verdict']}")
        for part in row["parts"]:
            value = f"{number(part['value'])} {part['unit']}" if part["value"] is not None else ""
            placed = f" [{part['class']}]" if part["class"] else ""
            lines.append(f"       {part['part']:<62} {value:>22} {part['target']:>8}  {verdict(part)}{placed}")
    lines += [f"fault: {fault}" for fault in result["faults"]]
    absent = result["machine"].get("peers_left_out", "").split()
    if absent:
        lines.append(f"peers that are not installed here: {', '.join(absent)}")
    lines.append(machine_text(result["machine"]))
    counts = {}
    for row in result["rows"]:
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
    lines.append("rows: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    return "\n".join(lines)


def cases_text(result):
    lines = []
    for case, by_class in result["cases"].items():
        for placed, figures in by_class.items():
            shown = figures.get("value")
            if shown:
                lines.append(f"{case:<58} [{placed}] {number(shown['median']):>9} [{number(shown['min'])}.."
                             f"{number(shown['max'])}] of {shown['n']}")
    return "\n".join(lines + [f"fault: {fault}" for fault in result["faults"]])


def rows_markdown(result):
    lines = [f"Measured on {machine_text(result['machine'])}", "",
             "| row | | measured | target | verdict |", "|---|---|---|---|---|"]
    for row in result["rows"]:
        lines.append(f"| **{row['id']}** | **{row['question']}** | | | **{row['verdict']}** |")
        for part in row["parts"]:
            value = f"{number(part['value'])} {part['unit']}" if part["value"] is not None else "–"
            placed = f" ({part['class']})" if part["class"] else ""
            lines.append(f"| | {part['part']} | {value}{placed} | {part['target']} | {verdict(part)} |")
    return lines


def questions_markdown(result):
    """Every case of a question: the median and the spread in its commonest class."""
    lines, last = [], None
    for case, by_class in result["cases"].items():
        question = case.split("/")[0]
        groups = {placed: figures for placed, figures in by_class.items() if placed != "moved" and "value" in figures}
        if not groups:
            continue
        if question != last:
            lines += ["", f"**{question.replace('_', ' ')}**", "", "| case | class | median | min..max | n |",
                      "|---|---|---|---|---|"]
            last = question
        for placed, figures in sorted(groups.items()):
            value = figures["value"]
            lines.append(f"| {'/'.join(case.split('/')[1:])} | {placed} | {number(value['median'])} | "
                         f"{number(value['min'])}..{number(value['max'])} | {value['n']} |")
    return lines


def markdown(result):
    return "\n".join(rows_markdown(result) + questions_markdown(result))


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__.strip().split("\n\n")[1], file=sys.stderr)
        return 2
    result = read_json(sys.argv[1])
    if len(sys.argv) == 2:
        print(markdown(result))
        return 0
    page = Path(sys.argv[2])
    text = page.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        print(f"{page} needs one line '{BEGIN}' and after it one line '{END}'.", file=sys.stderr)
        return 1
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{markdown(result)}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
