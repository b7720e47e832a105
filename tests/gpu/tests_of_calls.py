"""G0 to G6, G15: is each call heard, once and with what it was given?"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import heard
from place import Failed, Skipped
from recordings import answers_of, record, read_recording


def g0(place):
    """The source attaches, to the one libcupti of the process."""
    maps = place.folder / "maps"
    _, events, _ = place.heard(place.program("runtime_calls"), GPU_MAPS=str(maps))
    place.must_be_attached(events)
    libraries = sorted(set(maps.read_text().split()))
    if len(libraries) != 1:
        raise Failed(f"not one libcupti is loaded, but {libraries}")
    notice = next(one for one in place.notices(events) if one["state"] == "attached")
    return f"CUPTI {notice['cupti']} from {libraries[0]}"


def g1(place):
    """Each call of the runtime is heard as it was made: kinds, phases, handles, bytes, streams, results."""
    count, events = place.compared(place.program("runtime_calls"))
    counts = heard.counts(events)
    wanted = {"event_creation": 7, "event_record": 11, "event_wait": 5, "event_deletion": 7, "event_synchronization": 10,
              "stream_creation": 4, "stream_deletion": 4, "stream_synchronization": 8, "device_synchronization": 6,
              "memory_allocation": 12, "memory_deallocation": 12}
    if wrong := {kind: (counts.get(kind, 0), number) for kind, number in wanted.items() if counts.get(kind, 0) != number}:
        raise Failed(f"(heard, made): {wrong}")
    return f"{count} events, each as the program made it"


def g1b(place):
    """Calls that fail are heard with their result, and make nothing."""
    count, events = place.compared(place.program("failing_calls"))
    failed = Counter((one["api"], one["result"]) for one in events if one.get("phase") == "failed")
    if failed[("cudaMalloc", 2)] != 3 or sum(failed.values()) != 4:
        raise Failed(f"other calls failed than should: {dict(failed)}")
    return f"{count} events, 4 of them failures: " + ", ".join(f"{api} {result}" for api, result in failed)


def g1c(place):
    """Eight threads at once: all are heard, in each one's order, and none is lost."""
    each = 200 if place.fakes else 10000
    count, _ = place.compared(place.program("thread_calls"), str(each))
    if count != 8 * (2 * each + 2):
        raise Failed(f"{count} events, and not {8 * (2 * each + 2)}")
    return f"{count} events of 8 threads, in order, none lost"


def g2(place):
    """The same for a program that calls the driver."""
    count, events = place.compared(place.program("driver_calls"))
    if layers := {one["layer"] for one in events if "layer" in one and one["channel"] not in heard.UNTOLD} - {"driver"}:
        raise Failed(f"calls are told to be of {layers}")
    return f"{count} events, each as the program made it, all of the driver"


def g3(place):
    """Default streams of each thread's own are told apart from the common one."""
    count, events = place.compared(place.program("runtime_calls_per_thread"))
    own = sum(one.get("stream") == 2 for one in events)
    if own == 0 or any(one.get("stream") == 0 for one in events):
        raise Failed("the thread's own default stream is not told as 2")
    return f"{count} events, {own} of them on a thread's own default stream"


def g4(place):
    """A program with the runtime linked in is heard like one that shares it."""
    shared, static = (place.compared(place.program(name))[1] for name in ("runtime_calls", "runtime_calls_static"))
    one, other = heard.in_words(shared), heard.in_words(static)
    if one != other:
        at = next((at for at, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), min(len(one), len(other)))
        raise Failed(f"from event {at} on they differ: {one[at:at + 1]} and {other[at:at + 1]}")
    return f"{len(one)} events, alike"


def g5(place):
    """Libraries' own calls are heard, too (for information)."""
    if place.fakes:
        raise Skipped("there are no libraries over stand-ins")
    script = Path(__file__).resolve().parent / "scripts" / "libraries.py"
    _, events, run = place.heard(sys.executable, str(script), status=None)
    used = run.stdout.strip()
    if run.returncode == 77:
        raise Skipped("neither cuBLAS, cuDNN nor NCCL is here")
    if run.returncode != 0:
        raise Failed(f"it ended with {run.returncode}: {run.stderr.strip()[-300:]}")
    place.figures["heard"] = heard.counts(events)
    return f"{used}: {place.figures['heard']}"


def g6(place):
    """CUPTI's callbacks are recorded for programs here, and the open questions are answered from them."""
    place.output.mkdir(parents=True, exist_ok=True)
    recorded = {}
    for name, *words in (["runtime_calls"], ["runtime_calls_per_thread"], ["driver_calls"], ["failing_calls"], ["thread_calls", "5"]):
        program = place.program(name)
        recorded[name] = read_recording(record(place, name, program, *words))
        if name == "thread_calls":
            continue  # which thread is first is another in each run
        _, events, _ = place.heard(program, *words)
        place.must_be_attached(events)
        (place.output / f"{name}.events").write_text("\n".join(heard.in_words(events)) + "\n")
    place.answers += answers_of(recorded)
    return f"{sum(map(len, recorded.values()))} callbacks of {len(recorded)} programs, in {place.output}"


def g15(place):
    """The stand-ins' rules hold of the real libraries: their contract, asked of these."""
    program = next(iter(sorted(place.build.glob("**/cuda_contract_test"))), None)
    if program is None:
        raise Skipped("the contract of the stand-ins was not built")
    variables = place.variables()
    if not place.fakes:
        # The program is linked with the stand-ins; the driver's own folder is searched after theirs.
        variables["LD_LIBRARY_PATH"] = f"{place.driver_folder()}:{variables['LD_LIBRARY_PATH']}"
        loaded = subprocess.run([str(program)], env={**variables, "LD_TRACE_LOADED_OBJECTS": "1"}, capture_output=True, text=True, check=False).stdout
        if standing_in := [line.split()[0] for line in loaded.splitlines() if "cuda/fakes" in line]:
            raise Skipped(f"the real {', '.join(standing_in)} not found: the contract is that of CUDA 13")
    run = subprocess.run([str(program)], env=variables, capture_output=True, text=True, check=False)
    rules = {word: [line.split()[-3] for line in run.stdout.splitlines() if line.startswith(f"[{mark}]") and line.endswith(" ms)")]
             for word, mark in (("hold", "       OK "), ("do not hold", "  FAILED  "), ("were not asked", "  SKIPPED "))}
    place.figures.update(rules)
    if run.returncode != 0:
        raise Failed(f"these do not hold: {', '.join(rules['do not hold'])}" if rules["do not hold"] else f"it ended with {run.returncode}")
    return "; ".join(f"{len(names)} rules {word}" for word, names in rules.items())


TESTS = {"G0": (1, 30, g0), "G1": (1, 30, g1), "G1b": (1, 30, g1b), "G1c": (1, 60, g1c), "G2": (1, 30, g2), "G3": (1, 30, g3),
         "G4": (1, 45, g4), "G5": (1, 60, g5), "G6": (1, 90, g6), "G15": (1, 75, g15)}
