"""What do the recordings of CUPTI's callbacks say? programs/recording.hpp says how they are written."""

from collections import Counter, defaultdict

from place import Failed

COLUMNS = ("site", "thread", "depth", "domain", "cbid", "name", "result", "handle", "stream", "bytes", "flags", "priority", "correlation",
           "context")
NUMBERS = ("thread", "depth", "domain", "cbid", "result", "bytes", "flags", "priority", "correlation", "context")


def record(place, name, *command):
    path = place.output / f"{name}.calls"
    path.unlink(missing_ok=True)
    place.run(*command, CUDA_INJECTION64_PATH=str(place.recorder), GPU_RECORDING=str(path))
    if not path.exists():
        raise Failed(f"nothing was recorded of {name}")
    return path


def version_of(path):
    return next(line.split()[2] for line in path.read_text().splitlines() if line.startswith("# cupti "))


def read_recording(path):
    lines = []
    for text in path.read_text().splitlines():
        if not text.startswith("#"):
            line = dict(zip(COLUMNS, text.split()))
            lines.append({**line, **{key: int(line[key]) for key in NUMBERS}})
    return lines


# The runtime asks what devices there are before it tells of a program's first call; the stand-ins do not.
ABOUT_DEVICES = ("cuModuleGetLoadingMode", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceTotalMem_v2", "cuDeviceGetUuid",
                 "cuDeviceGetAttribute")
# The driver maps memory where other memory was before, or elsewhere.
AT_ANY_ADDRESS = ("cuMemMap", "cuMemUnmap")


def comparable(lines):
    """Each callback in words that are the same wherever the same was called: calls are numbered from 1 on."""
    numbers, words = {0: 0}, []
    for line in lines:
        if line["depth"] == 1 and line["name"] in ABOUT_DEVICES:
            continue
        handle = "-" if line["name"] in AT_ANY_ADDRESS else line["handle"]
        number = numbers.setdefault(line["correlation"], len(numbers))
        words.append(" ".join(str(value) for value in {**line, "handle": handle, "correlation": number}.values()))
    return words


def nested(lines):
    """(outer exit, [exits of the calls right within it]) for each outermost call."""
    within = defaultdict(list)
    for line in lines:
        if line["site"] == "exit" and line["depth"] == 2:
            within[line["thread"]].append(line)
        if line["site"] == "exit" and line["depth"] == 1:
            yield line, within.pop(line["thread"], [])


def answers_of(recorded):
    """A line for each question that was open, with what the recordings say."""
    every = [line for lines in recorded.values() for line in lines]
    of_runtime = [(outer, inner) for lines in recorded.values() for outer, inner in nested(lines) if outer["domain"] == 2]
    # cudaFree(nullptr) frees nothing; it may make the context.
    heard = [(outer, inner) for outer, inner in of_runtime if outer["handle"] != "-" and (outer["name"], outer["handle"]) != ("cudaFree", "0")]
    shapes = defaultdict(Counter)
    for outer, inner in heard:
        # The driver's same-kind calls are those that have a handle of the same class.
        kind = outer["handle"].split(":")[0]
        same = [one["name"] for one in inner if one["handle"] != "-" and (one["handle"].split(":")[0] == kind or kind == "0")]
        shapes[outer["name"]]["+".join(same) or "none"] += 1
    several = {name: dict(kinds) for name, kinds in shapes.items() if len(kinds) > 1 or any("+" in kind or kind == "none" for kind in kinds)}
    pairs = [(outer["correlation"], one["correlation"]) for outer, inner in heard for one in inner]
    device = sorted({one["name"] for outer, inner in of_runtime if outer["name"] == "cudaDeviceSynchronize" for one in inner})
    notices = Counter((line["domain"], line["cbid"]) for line in every if line["site"] == "notice")
    failing = [(outer["name"], [one["name"] for one in inner]) for outer, inner in of_runtime if outer["result"] != 0]
    created = sum(1 for line in every if line["site"] == "exit" and line["domain"] == 2 and line["result"] == 0 and line["name"].startswith("cudaStreamCreate"))
    created += sum(1 for outer, _ in (pair for lines in recorded.values() for pair in nested(lines))
                   if outer["domain"] == 1 and outer["name"].startswith("cuStreamCreate"))
    return [
        f"one same-kind driver call for each runtime call: {'yes, for all ' + str(len(shapes)) if not several else 'no: ' + str(several)}",
        f"correlation ids: {sum(a == b for a, b in pairs)} of {len(pairs)} nested pairs share theirs; "
        f"{sum(line['correlation'] != 0 for line in every)} of {len(every)} callbacks have one that is not 0",
        f"cudaDeviceSynchronize calls {device or 'nothing'} of the driver",
        f"STREAM_CREATED came {notices[3, 3]} times for {created} streams made by calls, CONTEXT_CREATED {notices[3, 1]} times",
        f"failing calls reach the driver: {failing or 'none failed'}",
        f"domain of synchronizations: {notices[4, 1]} of streams, {notices[4, 2]} of contexts, for "
        f"{sum(line['site'] == 'exit' and line['name'].endswith('StreamSynchronize') and line['depth'] == 1 for line in every)} and "
        f"{sum(line['site'] == 'exit' and line['depth'] == 1 and line['name'].startswith(('cudaDeviceSynchronize', 'cuCtxSynchronize')) for line in every)} calls",
    ]
