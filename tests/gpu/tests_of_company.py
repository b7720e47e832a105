"""G10 to G13: beside PyTorch, profilers and sanitizers, in forks, and coming and going."""

import json
import shutil
from collections import Counter

import heard
from place import Failed, Skipped

# What PyTorch's GPU trace calls its events, by our channels, with the fields that it gives.
OF_TORCH = {"event_creation": ("event",), "event_deletion": ("event",), "event_record": ("event", "stream"), "event_wait": ("event", "stream"),
            "memory_allocation": ("address",), "memory_deallocation": ("address",), "stream_creation": ("stream",),
            "device_synchronization": (), "stream_synchronization": ("stream",), "event_synchronization": ("event",)}


def g10(place):
    """Each event of PyTorch's own GPU trace is one of ours, in its thread's order."""
    trace = place.folder / "torch.jsonl"
    events, _ = place.torch("torch_calls.py", str(trace), source="cuda:lossless", PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    place.must_be_attached(events)
    ours = {thread: [(one["channel"].removeprefix("cuda."), *(one[field] for field in OF_TORCH[one["channel"].removeprefix("cuda.")]))
                     for one in calls if one["channel"].removeprefix("cuda.") in OF_TORCH and one["phase"] in ("instant", "begin")]
            for thread, calls in heard.calls_of(events).items()}
    at, extras, matched = Counter(), Counter(), 0
    for line in heard.read_lines(trace):
        wanted, calls = (line["kind"], *line["given"]), ours.get(line["thread"], [])
        while at[line["thread"]] < len(calls) and calls[at[line["thread"]]] != wanted:
            extras[calls[at[line["thread"]]][0]] += 1
            at[line["thread"]] += 1
        if at[line["thread"]] == len(calls):
            raise Failed(f"event {matched} of PyTorch's was not heard in its order: {wanted}")
        at[line["thread"]] += 1
        matched += 1
    if matched == 0:
        raise Failed("PyTorch's trace was empty")
    return f"{matched} events of PyTorch's are ours, one for one; beside them: {dict(extras)}"


def profiled(place, **variables):
    """(GPU events that torch.profiler saw, events that were heard, what the source said of itself)."""
    events, run = place.torch("torch_profiled.py", source=variables.pop("source", "cuda"), **variables)
    states = [one["state"] for one in place.notices(events)]
    return place.answer_of(run)["gpu_events"], sum(heard.counts(events).values()), states


def g11(place):
    """Who comes second to CUPTI, profiler, sanitizer or we, is told so, and no program dies of it."""
    report = []
    run = place.run(place.program("attach_cycles"), "1", status=6, CUDA_INJECTION64_PATH=str(place.recorder),
                    GPU_RECORDING=str(place.folder / "other.calls"))
    report.append(f"after another subscriber: {run.stderr.strip().splitlines()[-1]}")
    if sanitizer := shutil.which("compute-sanitizer"):
        _, events, run = place.heard(sanitizer, place.program("runtime_calls"), status=None, may_be_silent=True)
        said = [f"{one['state']} {one['owner']} {one['reason']}".strip() for one in place.notices(events)]
        report.append(f"under compute-sanitizer: it ended with {run.returncode}; the source: {', '.join(said) or 'was not let in'}")
    else:
        report.append("compute-sanitizer is not here")
    try:
        for what, options in (("we first, then torch.profiler", {}), ("the same, and cuda:hold", {"source": "cuda:hold"}),
                              ("the same, and KINETO_USE_DAEMON=1", {"source": "cuda:hold", "KINETO_USE_DAEMON": "1"})):
            seen, ours, states = profiled(place, **options)
            report.append(f"{what}: it saw {seen} events of the GPU; we {ours} events, {states}")
    except Skipped as why:
        report.append(f"torch.profiler: {why}")
    place.answers += report
    return f"{len(report)} meetings, all programs lived: see the lines above"


def g12(place):
    """A forked child ends as it should, and nothing is heard of it."""
    ledger, events, _ = place.heard(place.program("fork_calls"))
    try:
        count = heard.compare(ledger, events)
    except heard.Different as what:
        raise Failed(str(what)) from None
    workers = "no PyTorch here for its loader"
    try:
        _, run = place.torch("torch_loader.py", source="cuda")
        workers = run.stdout.strip().splitlines()[-1]
    except Skipped as why:
        workers = str(why)
    return f"{count} events of the parent, none of its child; {workers}"


def g13(place):
    """A source comes and goes a thousand times under eight threads: no event after it went, none missed."""
    times = 50 if place.fakes else 1000
    run = place.run(place.program("attach_cycles"), str(times), status=None)
    if run.returncode == 6:
        raise Failed(f"CUPTI could not be had: {run.stderr.strip()}")
    answer = json.loads(run.stdout)
    place.figures.update(answer)
    if run.returncode != 0:
        raise Failed(f"it ended with {run.returncode}: {answer}")
    return f"{answer['attached']} times, {answer['heard']} events of {answer['calls']} calls; none late, none missed"


TESTS = {"G10": (3, 90, g10), "G11": (3, 150, g11), "G12": (3, 60, g12), "G13": (3, 80, g13)}
