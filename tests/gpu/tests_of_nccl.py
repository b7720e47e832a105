"""N0 to N8: NCCL itself, with ringmain's plugin in it. nccl_rows.py says what is known of NCCL."""

import glob
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import heard
import nccl_rows
from nccl_rows import ONE, SOCKETS, TWO
from place import SCRIPTS, SKIPPED, Failed, Skipped

PLUGIN = "libnccl-profiler-ringmain.so"
TWO_RANKS_ON_A_GPU = 23000  # the version code from which NCCL lets them
SOCKETS_ONLY = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
SPANS = ("nccl.api", "nccl.operation", "nccl.group", "nccl.launch", "nccl.proxy_op", "nccl.proxy_step", "nccl.proxy_control",
         "nccl.kernel_channel", "nccl.kernel_phase", "nccl.copy_engine", "nccl.net")
# The recorder's types, of which there are as many spans. Steps and controls are as many as time has it.
OF_TYPE = {0x1: "nccl.group", 0x2: "nccl.operation", 0x4: "nccl.operation", 0x8: "nccl.proxy_op", 0x40: "nccl.kernel_channel",
           0x100: "nccl.api", 0x200: "nccl.api", 0x400: "nccl.api", 0x800: "nccl.launch", 0x1000: "nccl.copy_engine"}
CASES = {ONE: ("alone", "self", "self_graph", "abort"),
         TWO: ("reduce", "nothing", "broadcast", "all_to_all", "reduce_graph", "several", "symmetric", "copy_engine", "one_sided", "abort")}
CASES[SOCKETS] = CASES[TWO]


def variables(place, over=ONE, **more):
    """Of a program that calls NCCL: which NCCL it is, and that it lets two ranks share a GPU."""
    chosen = {"GPU_NCCL": library(place), "NCCL_MULTI_RANK_GPU_ENABLE": "1", **(SOCKETS_ONLY if over == SOCKETS else {})}
    return {**chosen, **{key: value for key, value in os.environ.items() if key.startswith("FAKE_NCCL_")}, **more}


def library(place):
    if place.fakes:
        return str(place.programs / "nccl" / "libnccl.so.2")
    if folder := os.environ.get("RINGMAIN_NCCL"):
        path = Path(folder) / "lib" / "libnccl.so.2"
        if not path.exists():
            raise Failed(f"RINGMAIN_NCCL is {folder}, where there is no lib/libnccl.so.2")
        return str(path)
    asked = subprocess.run([place.python, "-c", "import site, sys; print(*site.getsitepackages(), site.getusersitepackages(), *sys.path, sep='\\n')"],
                           capture_output=True, text=True, check=False)
    found = [one for folder in asked.stdout.splitlines() if folder for one in sorted(glob.glob(f"{folder}/nvidia/nccl/lib/libnccl.so.2"))]
    return (found or ["libnccl.so.2"])[0]


def plugin(place):
    found = [one for one in sorted(place.build.glob(f"**/{PLUGIN}")) if "package" not in one.parts]
    if not found:
        raise Skipped(f"{PLUGIN} was not built")
    return str(found[0])


def version(place):
    run = place.run(place.program("nccl_calls"), "version", status=None, **variables(place))
    if run.returncode != 0:
        raise Skipped(run.stderr.strip().splitlines()[-1])
    return place.answer_of(run)["version"]


def two_ranks(place):
    """The version, if two ranks may share the one GPU."""
    if (found := version(place)) < TWO_RANKS_ON_A_GPU:
        raise Skipped(f"this is NCCL {found}, and from {TWO_RANKS_ON_A_GPU} on two ranks may share a GPU: name a folder with one by RINGMAIN_NCCL")
    return found


def run_ranks(place, commands, environment):
    """What each rank printed. If one fails the others are ended, as they would wait for it."""
    runs = []
    for rank, command in enumerate(commands):
        files = [place.folder / f"rank-{len(list(place.folder.iterdir()))}.{kind}" for kind in ("out", "err")]
        with files[0].open("w") as out, files[1].open("w") as error:
            runs.append((subprocess.Popen(command, stdout=out, stderr=error, env=place.variables(**environment, RANK=str(rank))), *files))
    first = None  # that failed: the others only follow
    while any(run.poll() is None for run, _, _ in runs):
        first = first or next((run for run, _, _ in runs if run.poll()), None)
        for run, _, _ in runs:
            if first is not None and run.poll() is None:
                run.kill()
        time.sleep(0.02)
    for rank, (run, _, error) in enumerate(runs):
        text = error.read_text()
        if run.returncode == SKIPPED:
            raise Skipped((text.strip().splitlines() or ["a rank said nothing of why it ended"])[-1])
        if run.returncode != 0 and first in (None, run):
            how = signal.Signals(-run.returncode).name if run.returncode < 0 else run.returncode
            raise Failed(f"rank {rank} ended with {how}: {text.strip()[-300:]}")
        if "the plugin broke" in text:
            raise Failed(text.strip()[-300:])
    return [out.read_text() for _, out, _ in runs]


def played(place, over, cases, prefix=(), environment=None):
    """The lines that rank 0 said; all ranks run `prefix` before the program, with %d in it for the rank."""
    ranks = 1 if over == ONE else 2
    meeting = place.folder / f"meeting-{len(list(place.folder.iterdir()))}"
    commands = [[*(word.replace("%d", str(rank)) for word in prefix), place.program("nccl_calls"), str(rank), str(ranks), str(meeting), *cases]
                for rank in range(ranks)]
    said = run_ranks(place, commands, {**variables(place, over), **(environment or {})})
    return [json.loads(line) for line in said[0].splitlines() if line.startswith("{")]


def listened(place, over, cases, kernels, **environment):
    """(the program's line of each case, all events of rank 0) below ringmain."""
    if not place.ringmain.exists():
        raise Skipped("the ringmain program was not built")
    lines = place.folder / f"{len(list(place.folder.iterdir()))}-%d.jsonl"
    prefix = (str(place.ringmain), "run", "--source", f"nccl:kernel={'always' if kernels else 'never'}", "--sink", f"json_lines:{lines}", "--")
    told = played(place, over, cases, prefix, environment)
    events = heard.read_lines(str(lines).replace("%d", "0"))
    must_balance(events)
    return {one["case"]: one for one in told}, events


def must_balance(events):
    """Nothing that NCCL began is lost: all was published and written."""
    states = [one for one in events if one["channel"] == "nccl.plugin"]
    if not any(one["state"] == "attached" for one in states):
        raise Failed("the plugin did not attach: NCCL has not loaded it, or not on this bus")
    last = max(states, key=lambda one: one["time_ns"])
    ended = last["stopped"] + last["stale"] + last["aborted"]
    spans = sum(one["channel"] in SPANS for one in events)
    if (last["started"], last["open"], last["refused"]) != (ended + last["open"], 0, 0) or spans != ended:
        raise Failed(f"{last['started']} spans were begun, {ended} ended, {last['open']} are open, {last['refused']} refused, {spans} heard")


def judged(place, over, kernels, cases=None):
    """A verdict for each row of this way, and how many of each there were."""
    found, cases = version(place) if over == ONE else two_ranks(place), cases or CASES[over]
    told, events = listened(place, over, cases, kernels)
    rows = [row for row in nccl_rows.ROWS if (row.over, row.kernels) == (over, kernels) and row.case in cases and row.since <= found < row.before]
    verdicts = {row.name: nccl_rows.judge(row, found, told.get(row.case), events) for row in rows}
    place.figures.setdefault("rows", {}).update({name: list(verdict) for name, verdict in verdicts.items()})
    place.answers += [f"{verdict}: {name} ({why})" for name, (verdict, why) in verdicts.items()]
    place.answers.append(f"{over}: {belonging(events)}")
    keep(place, over, kernels, events)
    return Counter(verdict for verdict, _ in verdicts.values())


def belonging(events):
    """Of which operations are what the GPU and the network did, and what showed their ends?"""
    operations = {one["id"] for one in events if one["channel"] == "nccl.operation"}
    parts = [one for one in events if one["channel"] in ("nccl.kernel_channel", "nccl.proxy_op")]
    shown = Counter(one["kind"] for one in events if one["channel"] == "nccl.evidence")
    return f"{sum(one['parent'] in operations for one in parts)} of {len(parts)} kernel channels and proxies belong to an operation; ends by {dict(shown)}"


def keep(place, over, kernels, events):
    """The events without times, for whoever has no GPU: the first hundred of each case and channel, in order of time."""
    kept, many = [], Counter()
    names = {}
    for one in sorted((one for one in events if one["channel"].startswith("nccl.")), key=lambda one: (one["time_ns"], one["sequence"] if
                      one["channel"] == "nccl.plugin" else 0)):
        key = (one.get("group"), one["channel"])
        many[key] += 1
        if many[key] <= 100:
            thread = names.setdefault(one.get("thread"), len(names))
            kept.append({**one, "thread": thread} if "thread" in one else one)
    place.output.mkdir(parents=True, exist_ok=True)
    file = place.output / f"nccl-{over.replace(' ', '_')}-{'with' if kernels else 'without'}_kernels.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in kept))


def of(verdicts):
    return ", ".join(f"{verdicts[word]} {word}" for word in ("confirmed", "refuted", "not reached"))


def n0(place):
    """Each row of what is known of NCCL for one rank is confirmed, refuted or not reached."""
    return "rows: " + of(judged(place, ONE, False) + judged(place, ONE, True))


def n1(place):
    """The same for two ranks on one GPU."""
    return "rows: " + of(judged(place, TWO, False) + judged(place, TWO, True))


def n2(place):
    """The same where the two can talk by sockets only: proxies and their steps."""
    return "rows: " + of(judged(place, SOCKETS, False) + judged(place, SOCKETS, True))


def recorder(place, found):
    """The plugin that writes down each call, of the version that this NCCL speaks best."""
    abi = 4 if found < 22800 else 5 if found < 22900 else 6 if found < 23100 else 7
    path = place.build / "tests/harness/nccl/tests/plugins" / f"recording_v{abi}.so"
    if not path.exists():
        raise Skipped("the plugin that records was not built")
    return path


def recorded(path):
    return Counter(OF_TYPE[int(line.split()[1].removeprefix("type="), 16)] for line in path.read_text().splitlines()
                   if line.startswith("start ") and int(line.split()[1].removeprefix("type="), 16) in OF_TYPE)


# What holds of an event wherever it was heard.
WORDS = ("group", "rank", "kind", "func", "count", "dtype", "root", "peer", "point_to_point", "algorithm", "protocol", "nccl_channel", "nccl_channels",
         "captured", "depth", "send", "steps", "ending")


def in_words(events):
    """Lines without times, addresses and threads: how often, which channel, what is said."""
    heard_as = Counter(" ".join([one["channel"].removeprefix("nccl."), *(f"{word}={one[word]}" for word in WORDS if word in one)])
                       for one in events if one["channel"] in set(OF_TYPE.values()) | {"nccl.proxy_step"})
    return [f"{times} {words}" for words, times in sorted(heard_as.items())]


def replayed(place, recording):
    """What ringmain hears of the calls that were recorded."""
    lines = place.folder / f"{len(list(place.folder.iterdir()))}.jsonl"
    place.run(str(place.ringmain), "run", "--source", "nccl:kernel=always", "--sink", f"json_lines:{lines}", "--", sys.executable,
              str(SCRIPTS / "replay_nccl.py"), str(recording))
    return in_words(heard.read_lines(lines))


def leave_golden(place, plugged):
    """The calls of a small job as they were recorded, and what was heard of the same, for who has no GPU."""
    calls = place.output / "self.nccl_calls"
    calls.unlink(missing_ok=True)
    played(place, ONE, ("self",), environment={"NCCL_PROFILER_PLUGIN": str(plugged), "RINGMAIN_NCCL_RECORD": str(calls)})
    lived = in_words(listened(place, ONE, ("self",), True)[1])
    (place.output / "self.nccl_events").write_text("\n".join(lived) + "\n")
    if replayed(place, calls) != lived:
        raise Failed("the recording, replayed, is not heard as the job was: compare self.nccl_calls with self.nccl_events")


def n3(place):
    """What another plugin writes down alone ringmain hears, and that plugin hears no less behind it."""
    plugged, cases = recorder(place, version(place)), ("self", "self_graph")
    place.output.mkdir(parents=True, exist_ok=True)
    alone, behind = place.folder / "alone.nccl_calls", place.folder / "behind.nccl_calls"
    played(place, ONE, cases, environment={"NCCL_PROFILER_PLUGIN": str(plugged), "RINGMAIN_NCCL_RECORD": str(alone)})
    if not alone.exists():
        raise Failed("NCCL did not load the plugin that records")
    _, events = listened(place, ONE, cases, True, NCCL_PROFILER_PLUGIN=str(plugged), RINGMAIN_NCCL_RECORD=str(behind))
    wanted, got = recorded(alone), Counter(one["channel"] for one in events if one["channel"] in set(OF_TYPE.values()))
    if not wanted or wanted != got:
        raise Failed(f"alone it was told {dict(wanted)}; ringmain heard {dict(got)}")
    if not behind.exists() or recorded(behind) != wanted:
        raise Failed(f"alone it was told {dict(wanted)}; behind ringmain {dict(recorded(behind)) if behind.exists() else 'nothing'}")
    leave_golden(place, plugged)
    return f"{sum(wanted.values())} spans: {dict(wanted)}, alone, heard, and behind ringmain"


def attached(place, *words):
    run = place.run(place.program("nccl_attached"), *words, status=None, **variables(place, NCCL_PROFILER_PLUGIN=plugin(place)))
    if run.returncode == SKIPPED:
        raise Skipped(run.stderr.strip().splitlines()[-1])
    if run.returncode != 0:
        raise Failed(f"it ended with {run.returncode}: {run.stderr.strip()[-300:]}")
    figures = place.answer_of(run)
    place.figures.update(figures)
    return figures


def n4(place):
    """A hundred times NCCL loads the plugin, tells it of a communicator, and unloads it: each is heard whole."""
    figures = attached(place, "reload", "100")
    if (figures["opened"], figures["closed"], figures["operations"]) != (100, 100, 200) or figures["started"] != figures["over"]:
        raise Failed(f"not each of 100 was heard whole: {figures}")
    return f"100 times, {figures['operations']} operations; the plugin's file was mapped afterwards: {figures['mapped after']}"


def n5(place):
    """Listeners come and go under one communicator: what was called while one listened is heard, and nothing else."""
    figures = attached(place, "mask", "40")
    if figures["heard"] != figures["made while heard"] or figures["published"] != figures["heard"] or figures["started"] != figures["over"]:
        raise Failed(f"heard was something else: {figures}")
    return f"{figures['heard']} operations heard, {figures['made unheard']} made unheard"


def n6(place):
    """How fine is the GPU's clock, and how well is its time known by the host's?"""
    _, events = listened(place, ONE, ("self", "self_graph"), True)
    kernels = [one for one in events if one["channel"] == "nccl.kernel_channel" and not one["suspect"]]
    stamps = sorted({one[stamp] for one in kernels for stamp in ("gpu_began", "gpu_ended") if one[stamp]})
    if len(stamps) < 3:
        raise Failed(f"{len(kernels)} kernel channels gave {len(stamps)} different stamps")
    between = [later - earlier for earlier, later in zip(stamps, stamps[1:])]
    figures = {"stamps": len(stamps), "divisor_ns": math.gcd(*between), "least_ns": min(between),
               "error_ns": sorted(one["gpu_error_ns"] for one in kernels)[len(kernels) // 2],
               "backwards": sum(bool(one["gpu_ended"]) and one["gpu_ended"] < one["gpu_began"] for one in kernels)}
    place.figures.update(figures)
    if figures["backwards"]:
        raise Failed(f"{figures['backwards']} kernels ended before they began, and are not marked as suspect")
    return f"{figures['stamps']} stamps, multiples of {figures['divisor_ns']} ns; the host knows a time give or take {figures['error_ns']} ns"


# What listens: nothing at all, the plugin with nobody to hear it, all but kernels and steps, everything.
WAYS = {"alone": None, "unheard": ("nccl", "alarms"), "operations": ("nccl:kernel=never,steps=never", "json_lines:/dev/null"),
        "all": ("nccl:kernel=always", "json_lines:/dev/null")}


def n7(place):
    """What a call costs with the plugin and without, as ratios of runs that take turns."""
    over = ONE if version(place) < TWO_RANKS_ON_A_GPU else TWO
    rounds = {way: [] for way in WAYS}
    for _ in range(1 if place.fakes else 5):
        for way, listening in WAYS.items():
            prefix = () if listening is None else (str(place.ringmain), "run", "--source", listening[0], "--sink", listening[1], "--")
            rounds[way].append(next(one for one in played(place, over, ("cost",), prefix) if one["case"] == "figures"))
    place.figures["rounds"] = rounds
    for figure in ("call_ns", "done_ns"):
        median = {way: statistics.median(one[figure] for one in each) for way, each in rounds.items()}
        alone = [one[figure] for one in rounds["alone"]]
        spread = (max(alone) - min(alone)) / median["alone"]
        place.answers.append(f"{over}, {figure}: 1 = {median['alone']:.0f} ns (spread {spread:.0%}); "
                             + ", ".join(f"{way} {median[way] / median['alone']:.2f}" for way in list(WAYS)[1:]))
        if not place.fakes and figure == "call_ns" and median["unheard"] > median["alone"] * (1 + 2 * max(spread, 0.05)):
            raise Failed(f"a call that nobody hears takes {median['unheard'] / median['alone']:.2f} times as long")
    return f"{sum(map(len, rounds.values()))} runs, ratios above"


def agreement(issued, operations):
    """Do NCCL's operations have the ids that the process group gave? How many, and the first that does not."""
    known = {one["op_id"] for one in issued}
    strangers = [one for one in operations if one["op_id"] not in known]
    told = {one["op_id"] for one in operations}
    if not issued or not operations:
        raise Failed(f"{len(issued)} operations of the process group were heard, {len(operations)} of NCCL")
    if strangers:
        raise Failed(f"{len(strangers)} of NCCL's {len(operations)} operations have an id that the process group did not give, "
                     f"the first {strangers[0]['func']} {strangers[0]['op_id']}")
    if twice := [op_id for op_id, times in Counter(one["op_id"] for one in issued).items() if times > 1]:
        raise Failed(f"{len(twice)} operations were said to be issued twice")
    return f"{len(operations)} of NCCL's operations are {len(told)} of the process group's {len(issued)}"


def n8(place):
    """PyTorch's process group on nccl, two ranks on one GPU: NCCL's operations have its ids, each issued once."""
    if place.fakes:
        raise Skipped("PyTorch has no process group over a stand-in for NCCL")
    two_ranks(place)
    package, lines = place.package(), place.folder / "torch-%r.jsonl"
    script = SCRIPTS / "nccl_group.py"
    own = {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""), "PYTHONDONTWRITEBYTECODE": "1", "MASTER_ADDR": "127.0.0.1",
           "MASTER_PORT": "29571", "WORLD_SIZE": "2", "PYTHONPATH": ":".join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))}
    if "RINGMAIN_NCCL" in os.environ:
        own["LD_PRELOAD"] = library(place)  # PyTorch's wheel brings another
    command = [str(place.ringmain), "run", "--source", "torch", "--source", "nccl:kernel=always", "--sink", f"json_lines:{lines}", "--", place.python,
               str(script)]
    run_ranks(place, [command] * 2, {**variables(place), **own})
    said = []
    for rank in range(2):
        events = heard.read_lines(str(lines).replace("%r", str(rank)))
        said.append(agreement([one for one in events if one["channel"] == "collective.issued" and one["source"] == "torch"],
                              [one for one in events if one["channel"] == "nccl.operation"]))
    return "; ".join(f"rank {rank}: {text}" for rank, text in enumerate(said))


TESTS = {name: ("nccl", seconds, function) for name, seconds, function in
         (("N0", 60, n0), ("N1", 75, n1), ("N2", 75, n2), ("N3", 45, n3), ("N4", 90, n4), ("N5", 25, n5), ("N6", 20, n6), ("N7", 45, n7),
          ("N8", 45, n8))}
