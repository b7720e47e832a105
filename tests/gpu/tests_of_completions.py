"""G8, G8b, G8c, G9: the GPU's own word that it got there."""

from place import Failed

WAYS = ("baseline", "memory_writes_spin", "memory_writes", "event_queries", "host_functions")


def answer(place, *words):
    return place.answer_of(place.run(place.program("completions"), *words))


def g8(place):
    """How soon after a kernel's end its completion is heard, by each strategy; the baseline is the kernel's own word in pinned memory."""
    times = "20" if place.fakes else "2000"
    of = {way: answer(place, "latency", way, times) for way in WAYS}
    place.figures.update(of)
    for way, figures in of.items():
        place.answers.append(f"{way}: p50 {figures['p50_us']} us, p99 {figures['p99_us']} us, p99.9 {figures['p999_us']} us")
    # Over stand-ins only the way is tried.
    if not place.fakes and of["memory_writes_spin"]["p50_us"] >= of["host_functions"]["p50_us"]:
        raise Failed("a memory write is not seen sooner than a host function is called: see the lines above")
    return "the lines above, from the host's word to a kernel on"


def g8b(place):
    """A million tickets on 16 streams, through a queue of 64, while memory is allocated and freed: each once, in order."""
    figures = answer(place, "many", "4000" if place.fakes else "1000000")
    place.figures.update(figures)
    return f"{figures['tickets']} tickets on {figures['lanes']} lanes, by {figures['strategy']}"


def g8c(place):
    """An illegal address with 1,000 tickets armed: all fail within a second, and the program ends as it should."""
    figures = answer(place, "error")
    place.figures.update(figures)
    if not place.fakes and figures["ms"] > 1000:
        raise Failed(f"it took {figures['ms']} ms")
    return f"{figures['failed']} failed with {figures['result']} after {figures['ms']} ms; then: {figures['armed later']}"


def g9(place):
    """A capture in global mode is whole though the poller asks and others arm; a host node says each of its launches."""
    figures = answer(place, "capture")
    place.figures.update(figures)
    return f"{figures['nodes']} launches by a node, {figures['others']} tickets, a capturing stream: {figures['refused']}"


TESTS = {"G8": ("completions", 120, g8), "G8b": ("completions", 120, g8b), "G8c": ("completions", 60, g8c), "G9": ("completions", 60, g9)}
