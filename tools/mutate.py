#!/usr/bin/env python3
"""Does the suite notice when a line of the library is wrong? Plants faults, one at a time, and runs tests until one
goes red.

Two tables, in the form that tests/interleave/plant.py describes: tests/interleave/faults.txt, whose killers are
scenarios of interleave_search, and tests/mutation/mutants.txt, whose killers are googletests, in the order in which
they are tried: engine_test:LaneTest.* and so on. A line "! why" says why no test can notice that mutant.

All faults are planted in one copy of the tree, each with a switch, and built once (-O1); the user's tree is left
alone. Usage: mutate.py [--root DIR] [--work DIR] [--only NAME] [--list] [--check]
  --check   only check that the text of every mutant occurs exactly once
Exit status: 0 all killed or explained, 1 not, 2 wrong usage.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "interleave"))
sys.dont_write_bytecode = True
import plant  # noqa: E402
import tree  # noqa: E402

LIMIT_S = 60  # for one test program; a healthy one needs a few seconds
SWITCH = """#pragma once
#include <cstdlib>
namespace ringmain::mutation {
inline bool on(int mutant) noexcept {
  static const char* const chosen = std::getenv("RINGMAIN_MUTANT");
  return chosen != nullptr && std::atoi(chosen) == mutant;
}
}  // namespace ringmain::mutation
"""


class Mutant:
    def __init__(self, name, killers, file, edits, why, scheduled):
        self.name, self.killers, self.file, self.edits, self.why = name, killers, file, edits, why
        self.scheduled = scheduled  # planted by the interleaving search's own build


def read_table(path, scheduled):
    text = path.read_text()
    for block in re.split(r"\n\s*\n", text):
        why = " ".join(line[2:] for line in block.splitlines() if line.startswith("! "))
        bare = "\n".join(line for line in block.splitlines() if not line.startswith("! "))
        for name, killers, file, edits in plant.blocks(bare):
            yield Mutant(name, killers, file, edits, why, scheduled)


def mutants_of(root):
    return (list(read_table(root / "tests/mutation/mutants.txt", False))
            + list(read_table(root / "tests/interleave/faults.txt", True)))


def faults_of_tables(root, mutants):
    """One sentence for each mutant that cannot be planted."""
    names = [m.name for m in mutants]
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield f"mutant '{name}' is there twice; give one of them another name"
    for scheduled in (False, True):
        texts = {}
        for m in (m for m in mutants if m.scheduled == scheduled):
            path = root / m.file
            if m.file not in texts:
                texts[m.file] = path.read_text() if path.is_file() else ""
            for old, new in m.edits:
                found = len(plant.pattern(old).findall(texts[m.file]))
                if found == 1:
                    texts[m.file] = plant.pattern(old).sub(lambda _, by=new: by, texts[m.file])
                    continue
                yield f"{m.file}: the text of mutant '{m.name}' occurs {found} times, not once: {old.splitlines()[0]}"


def copy_tree(root, to, mutants):
    """The project's files below `to`, with the switched mutants planted; unchanged files keep their time."""
    texts = {}
    for number, m in enumerate(mutants):
        if m.scheduled:
            continue
        text = texts.get(m.file) or (root / m.file).read_text()
        for old, new in m.edits:
            switched = new.replace("FAULT", f"::ringmain::mutation::on({number})")
            text = plant.pattern(old).sub(lambda _, by=switched: by, text)
        texts[m.file] = text
    wanted = {str(path) for path in tree.files(root)}
    for name in wanted:
        data = texts[name].encode() if name in texts else (root / name).read_bytes()
        path = to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)
    for path in [p for p in to.rglob("*") if p.is_file()]:
        if str(path.relative_to(to)) not in wanted:
            path.unlink()


def build(root, work, programs):
    switch = work / "mutant.hpp"
    if not switch.is_file() or switch.read_text() != SWITCH:
        switch.write_text(SWITCH)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    headers = os.environ.get("RINGMAIN_CUDA_HEADERS", root.resolve() / "build" / "cuda-headers")
    for arguments in (
            ["-S", work / "src", "-B", work / "build", *generator, "-DCMAKE_BUILD_TYPE=Release",
             f"-DCMAKE_CXX_FLAGS_RELEASE=-O1 -include {switch}", "-DRINGMAIN_BUILD_EXAMPLES=OFF",
             *([f"-DRINGMAIN_CUDA_HEADERS={headers}"] if Path(headers).is_dir() else [])],
            ["--build", work / "build", "--parallel", str(os.cpu_count() or 2), "--target", *programs]):
        done = subprocess.run(["cmake", *map(str, arguments)], capture_output=True, text=True, check=False,
                              env={**os.environ, "CCACHE_BASEDIR": str(work), "CCACHE_NOHASHDIR": "1"})
        if done.returncode != 0:
            sys.exit(f"mutate.py: the copy below {work} does not build:\n{(done.stdout + done.stderr)[-3000:]}")


def red(work, killer, number):
    """How this killer failed, or None."""
    program, _, tests = killer.partition(":")
    environment = {**os.environ, "RINGMAIN_MUTANT": str(number)}
    arguments = [f"--gtest_filter={tests or '*'}", "--gtest_brief=1"]
    if program == "ringmain_fuzz":
        arguments = ["--seed", "1", "--cases", tests, "--shrink", "0"]
    try:
        done = subprocess.run([work / "build" / "bin" / program, *arguments],
                              capture_output=True, text=True, errors="replace", timeout=LIMIT_S, env=environment,
                              check=False)
    except subprocess.TimeoutExpired:
        return "time ran out"
    if done.returncode == 0:
        return None
    failed = re.search(r"\[  FAILED  \] ([\w./]+)", done.stdout)
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    return failed[1] if failed else f"exit {done.returncode}"


def found_by_search(work, name):
    done = subprocess.run([work / "build" / "bin" / "interleave_search", "--fault", name, "--schedules", "300000"],
                          capture_output=True, text=True, check=False)
    return done.stdout.strip().splitlines()[-1][:90] if done.returncode == 0 and done.stdout else None


def judge(work, m, number):
    """The killer's words, or None."""
    if m.scheduled:
        return found_by_search(work, m.name)
    for killer in m.killers:
        how = red(work, killer, number)
        if how:
            return how
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], add_help=True)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--only", help="the mutants whose name holds this")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    mutants = mutants_of(asked.root)
    if asked.list:
        for m in mutants:
            print(f"{m.name:42} {m.file:28} {' '.join(m.killers)}")
        return 0
    faults = list(faults_of_tables(asked.root, mutants))
    for fault in faults:
        print(fault)
    if faults or asked.check:
        print(f"{len(mutants)} mutants, {len(faults)} cannot be planted")
        return 1 if faults else 0
    chosen = [(n, m) for n, m in enumerate(mutants) if not asked.only or asked.only in m.name]
    if not chosen:
        print(f"no mutant's name holds '{asked.only}'; --list shows them", file=sys.stderr)
        return 2
    work = (asked.work or asked.root / "build" / "mutate").resolve()
    copy_tree(asked.root, work / "src", mutants)
    programs = {"interleave_search" if m.scheduled else k.partition(":")[0] for _, m in chosen for k in m.killers}
    build(asked.root, work, sorted(programs))
    killers = {k for _, m in chosen if not m.scheduled for k in m.killers}
    for killer in sorted(killers):
        how = red(work, killer, -1)
        if how:
            sys.exit(f"mutate.py: {killer} is red without any mutant ({how}); mend that first")
    survived = []
    for number, m in chosen:
        began = time.monotonic()
        how = judge(work, m, number)
        word = "killed" if how else "explained" if m.why else "SURVIVED"
        print(f"{word:9} {m.name:42} {m.file:26} {how or m.why}  ({time.monotonic() - began:.1f} s)", flush=True)
        if word == "SURVIVED":
            survived.append(m.name)
    print(f"{len(chosen)} mutants, {len(survived)} survived unexplained")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
