#!/usr/bin/env python3
"""Does every row of models.txt come out as the table says?

One row is one search: a Promela model (NAME.pml, searched exhaustively by Spin) or a Relacy test
(NAME.cpp, schedules under the C++ memory model) with its flags; rows that differ in run flags only
are a group, compiled once. Red: a mutant that is not caught, a mutant caught for another reason
than the one named, a holding variant whose number of states or schedules differs, a search that did
not finish, anything that does not compile.
Exit codes: 0 as the table says, 1 not, 2 wrong use, 77 skipped because a tool is missing.

  run_models.py list TABLE                    name and label, one line for each group
  run_models.py run TABLE NAME [NAME ...]     these groups or rows
  run_models.py all TABLE [-k TEXT] [--long]  every row whose name holds TEXT
"""
import argparse
import pathlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent
# pan's own bound on memory, MiB: a search that reaches it says so and is red.
MEMORY_MIB = {"model": 1024, "model-long": 4096}
TRUNCATED = ("max search depth too small", "Search not completed", "out of memory",
             "reached -DMEMLIM", "VECTORSZ is too small", "hash table is too small")


class Wrong(Exception):
    """One sentence for the reader of a red test."""


@dataclass
class Row:
    label: str
    want: str                     # holds | fails
    detail: str                   # number of states or schedules | what the search must say
    model: str
    flags: list = field(default_factory=list)
    compiler_flags: list = field(default_factory=list)
    run_flags: list = field(default_factory=list)

    @property
    def searcher(self):
        return "spin" if self.model.endswith(".pml") else "relacy"

    @property
    def group(self):
        """Rows of one group are compiled once: the name of the test they are."""
        parts = [self.model.rsplit(".", 1)[0]] + [f.removeprefix("-D") for f in self.flags]
        if "-l" in self.run_flags or "-a" in self.run_flags:
            parts.append("progress")
        if self.label == "model-long":
            parts.append("long")
        return "model." + ".".join(parts)

    @property
    def built_as(self):
        return self.label, self.flags, self.compiler_flags

    @property
    def name(self):
        words = self.run_flags[2:] if self.searcher == "relacy" else []
        return ".".join([self.group] + words)


def parse(table):
    rows, names = [], set()
    for number, line in enumerate(table.read_text().splitlines(), 1):
        line = line.split("#", 1)[0]
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("|")]
        where = f"{table.name}:{number}"
        if not 3 <= len(cells) <= 6:
            raise Wrong(f"{where}: {len(cells)} cells; a row has 3 to 6, separated by '|'.")
        want, _, detail = cells[1].partition(" ")
        row = Row(cells[0], want, detail.strip(), cells[2], *map(shlex.split, cells[3:]))
        if row.label not in MEMORY_MIB:
            raise Wrong(f"{where}: label '{row.label}' is none of {', '.join(MEMORY_MIB)}.")
        if want not in ("holds", "fails") or not row.detail:
            raise Wrong(f"{where}: say 'holds COUNT' or 'fails TEXT', not '{cells[1]}'.")
        if want == "holds" and not row.detail.isdigit():
            raise Wrong(f"{where}: '{row.detail}' is no count of states or schedules.")
        if not re.fullmatch(r"\w+\.(pml|cpp)", row.model):
            raise Wrong(f"{where}: '{row.model}' is neither NAME.pml nor NAME.cpp.")
        if row.name in names:
            raise Wrong(f"{where}: a second row named {row.name}.")
        if any(r.group == row.group and r.built_as != row.built_as for r in rows):
            raise Wrong(f"{where}: {row.group} has other rows with another label or other compiler "
                        "flags, and a group is compiled once.")
        names.add(row.name)
        rows.append(row)
    if not rows:
        raise Wrong(f"{table.name} has no rows.")
    return rows


def call(command, where, what, memory_mib=None):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (memory_mib << 20, memory_mib << 20))

    done = subprocess.run(command, cwd=where, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          preexec_fn=limit if memory_mib else None)
    if what and done.returncode:
        raise Wrong(f"{what} failed with exit code {done.returncode}:\n{done.stdout[-4000:]}")
    return done


def compile_for_spin(row, source, work, tools):
    shutil.copy(source, work)
    # Spin expands an inline whose argument names its own parameter until memory ends.
    call([tools.spin, f"-P{tools.cc} -E -x c", "-a", *row.flags, row.model], work, "spin -a",
         memory_mib=1024)
    mode = row.compiler_flags or ["-O0", "-DSAFETY"]
    call([tools.cc, "-w", f"-DMEMLIM={MEMORY_MIB[row.label]}", *mode, "-o", "search", "pan.c"],
         work, "compiling pan.c")


def search_with_spin(row, work):
    done = call(["./search", "-m1000000", *(row.run_flags or ["-w20"])], work, None)
    log = done.stdout
    (work / "search.log").write_text(log)
    errors = re.search(r"errors: (\d+)", log)
    stored = re.search(r"^\s*(\d+) states, stored", log, re.M)
    if done.returncode < 0 or not errors or not stored:
        raise Wrong(f"pan broke off (exit code {done.returncode}):\n{log[-4000:]}")
    if errors[1] == "0":
        for sign in TRUNCATED:
            if sign in log:
                raise Wrong(f"the search is not complete ('{sign}'), so it shows nothing.")
        return "holds", stored[1]
    if "max search depth too small" in log:
        raise Wrong("the search is not complete (depth too small), so it shows nothing.")
    return "fails", " ".join(re.search(r"^pan:1: (.*)", log, re.M)[1].split())


def compile_for_relacy(row, source, work, tools):
    call([sys.executable, HERE / "relacy_cxx20.py", work / "relacy_cxx20", tools.relacy],
         work, "copying Relacy")
    call([tools.cxx, "-std=c++20", "-O0", "-w", "-isystem", "relacy_cxx20",
          "-iquote", HERE / "stand_in", "-iquote", HERE.parents[1],
          *row.compiler_flags, *row.flags, "-o", "search", source], work,
         f"compiling {row.model}")


def search_with_relacy(row, work):
    done = call(["./search", *row.run_flags], work, None)
    log = done.stdout
    (work / "search.log").write_text(log)
    failed = re.search(r"^fails: (.*)", log, re.M)
    if done.returncode == 1 and failed:
        return "fails", failed[1]
    held = re.findall(r"^holds: .*?(\d+) iterations", log, re.M)
    if done.returncode != 0 or not held or failed:
        raise Wrong(f"the search broke off (exit code {done.returncode}):\n{log[-4000:]}")
    return "holds", str(sum(map(int, held)))


def missing(row, tools):
    need = {"spin": (("spin", tools.spin, "spin"), ("a C compiler", tools.cc, "gcc")),
            "relacy": (("Relacy", tools.relacy, "relacy-dev"),
                       ("a C++ compiler", tools.cxx, "g++"))}
    for what, path, package in need[row.searcher]:
        if not path:
            return f"skipped: {what} is not installed (Debian package {package})."
    return None


def judge(row, got, detail):
    """Raises Wrong unless the row comes out as it says."""
    if got != row.want:
        what = "this mutant is not caught" if row.want == "fails" else "this variant must hold"
        raise Wrong(f"{what}: wanted '{row.want} {row.detail}', got '{got} {detail}'.")
    if row.want == "fails" and row.detail not in detail:
        raise Wrong(f"caught for another reason: wanted '{row.detail}', got '{detail}'.")
    if row.want == "holds" and row.detail != detail:
        raise Wrong(f"the search went over {detail}, the table says {row.detail}: the model or the "
                    "test changed. Find out why before you change the table.")


def run_group(rows, table, tools):
    """Compiles once, searches once for each row; returns the exit code."""
    reason = missing(rows[0], tools)
    if reason:
        print(f"{reason} {rows[0].group}")
        return SKIPPED
    compile_, search = ((compile_for_spin, search_with_spin) if rows[0].searcher == "spin"
                        else (compile_for_relacy, search_with_relacy))
    work = tools.work / rows[0].group
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    red = False
    try:
        compile_(rows[0], (table.parent / rows[0].model).resolve(), work, tools)
    except Wrong as wrong:
        print(f"{rows[0].group}: {wrong}\nFiles: {work}", flush=True)
        return 1
    for row in rows:
        try:
            got, detail = search(row, work)
            judge(row, got, detail)
            print(f"{row.name}: {got} {detail}", flush=True)
        except Wrong as wrong:
            print(f"{row.name}: {wrong}\nFiles: {work}", flush=True)
            red = True
    if not red:
        shutil.rmtree(work)          # kept only for red rows: the trail lies there
    return int(red)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=["list", "run", "all"])
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("-k", default="", help="with all: only rows whose name holds this text")
    parser.add_argument("--long", action="store_true", help="with all: the model-long rows too")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("model-rows"))
    parser.add_argument("--spin", default=shutil.which("spin"))
    parser.add_argument("--cc", default=shutil.which("gcc") or shutil.which("cc"))
    parser.add_argument("--cxx", default=shutil.which("g++") or shutil.which("c++"))
    header = pathlib.Path("/usr/include/relacy")
    parser.add_argument("--relacy", default=str(header) if header.is_dir() else "")
    tools = parser.parse_intermixed_args()
    rows = parse(tools.table)
    groups = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    if tools.command == "list":
        for name, members in groups.items():
            print(name, members[0].label)
        return 0
    tools.work = tools.work.resolve()
    if tools.command == "all":
        chosen = [r for r in rows if tools.k in r.name and (tools.long or r.label == "model")]
    else:
        chosen = [r for r in rows if r.name in tools.names or r.group in tools.names]
    unknown = set(tools.names) - {r.name for r in chosen} - {r.group for r in chosen}
    if unknown or not chosen:
        raise SystemExit(f"no such row in {tools.table}: {' '.join(sorted(unknown)) or tools.k}")
    worst = 0
    for members in groups.values():
        members = [r for r in members if r in chosen]
        if members:
            code = run_group(members, tools.table, tools)
            worst = code if worst in (0, SKIPPED) and code else worst
    return worst


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as wrong:
        sys.exit(f"run_models.py: {wrong}")
