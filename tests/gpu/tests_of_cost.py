"""G7, G14: what does listening cost?"""

import statistics

from place import Failed, Skipped

WAYS = ("none", "loaded", "idle", "runtime", "driver", "both", "bus-0", "bus-1", "bus-4")
ROUNDS = 5


def noise(figures):
    """How far apart the same way's rounds lie, as a share of their median."""
    return (max(figures) - min(figures)) / statistics.median(figures)


def g7(place):
    """What a call costs, with nobody to many listening, as ratios to nobody."""
    program, failed = place.program("overhead"), []
    # Over stand-ins only the way is tried: what they cost is nobody's concern.
    times = 1 if place.fakes else ROUNDS
    for threads, calls in ((1, 20), (8, 10)) if place.fakes else ((1, 2000), (8, 1000)):
        rounds = {way: [] for way in WAYS}
        for _ in range(times):  # interleaved, so that a machine that slows down does so for all
            for way in WAYS:
                rounds[way].append(place.answer_of(place.run(program, way, str(threads), str(calls))))
        figures = {way: {call: statistics.median(one[call] for one in rounds[way]) for call in rounds[way][0]} for way in WAYS}
        place.figures[f"{threads} threads"] = {"median": figures, "rounds": rounds}
        for call in (call for call in figures["none"] if call != "resident_kib"):
            base, spread = figures["none"][call], noise([one[call] for one in rounds["none"]])
            ratios = ", ".join(f"{way} {figures[way][call] / base:.2f}" for way in WAYS[1:])
            own = figures["bus-1"][call] - figures["both"][call]
            place.answers.append(f"{threads} threads, {call}: 1 = {base:.0f} ns (spread {spread:.0%}); {ratios}; "
                                 f"a bus with a subscriber beyond a null callback: {own:.0f} ns")
            # What nobody hears costs what it costs alone; twice the spread of the same run is no noise.
            if not place.fakes and "not heard" in call and figures["bus-1"][call] > base * (1 + 2 * max(spread, 0.05)):
                failed.append(f"{call} with {threads} threads: {figures['bus-1'][call] / base:.2f} times")
        more = {way: figures[way]["resident_kib"] for way in WAYS}
        place.answers.append(f"{threads} threads, memory that came with listening, KiB: {more}")
    if failed:
        raise Failed("calls that nobody hears became slower: " + "; ".join(failed))
    return f"{2 * times * len(WAYS)} runs; ratios above, all figures in results.json"


def g14(place):
    """A loop like training is as fast while it is listened to."""
    program, alone, heard = place.program("training"), [], []
    if not place.ringmain.exists():
        raise Skipped("the ringmain program was not built")
    for _ in range(ROUNDS):
        alone.append(place.answer_of(place.run(program))["step_ns"])
        heard.append(place.answer_of(place.run(str(place.ringmain), "run", "--source", "cuda", "--sink", "summary", "--", program))["step_ns"])
    place.figures.update(alone_ns=alone, heard_ns=heard)
    ratio, spread = statistics.median(heard) / statistics.median(alone), noise(alone)
    if ratio > 1 + 2 * max(spread, 0.02):
        raise Failed(f"a step takes {ratio:.3f} times as long; the same loop alone varies by {spread:.1%}")
    return f"a step takes {ratio:.3f} times as long ({statistics.median(alone) / 1000:.0f} us alone, which varies by {spread:.1%})"


TESTS = {"G7": (2, 470, g7), "G14": (3, 100, g14)}
