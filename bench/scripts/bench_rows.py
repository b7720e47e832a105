"""Which rows does ringmain promise, and how is each computed? What a row and its parts are: bench_parts.py."""

from bench_measure import Absent, Missing
from bench_parts import NOISE_THROUGHPUT, Part, Row, exit_status  # noqa: F401, exit_status for those who judge


def ratio(case, reference, figure="value"):
    return lambda m: m.median(case, figure) / m.median(reference, figure)


def best(m, cases, choose):
    """The best figure of the peers that were built; there must be at least one."""
    found = [m.median(case) for case in cases if m.built(case)]
    if not found:
        raise Absent(cases[0])
    return choose(found)


def parking(m):
    """The best of the peers that slept at least three times in ten events: at this rate some go on spinning, and park seldom."""
    built = [case for case in PARKING if m.built(case)]
    if not built:
        raise Absent(PARKING[0])
    slept = [m.median(case) for case in built if m.median(case, "sleeps_per_event") >= 0.3]
    if not slept:
        raise Missing("no peer slept for its events")
    return min(slept)


def parking_against(case):
    return lambda m: parking(m) / m.median(f"latency/{case}/per_second:100000")


# The first is the default.
LANES = (("segments lane", "bus_segments"), ("ring lane", "bus_ring"), ("moodycamel lane", "bus_moodycamel"))
RAW = {"bus_segments": "raw_segmented", "bus_ring": "raw_ring", "bus_moodycamel": "raw_moodycamel"}


def for_lanes(name, unit, side, target, compute, **more):
    """One part for each kind of lane; `compute` gets the lane's name first."""
    return tuple(Part(f"{name}, {title}", unit, side, target, lambda m, lane=lane: compute(m, lane), **more)
                 for title, lane in LANES)


def cycles_above(case, reference="load_and_branch"):
    return lambda m: ((m.median(f"unheard/{case}") - m.median(f"unheard/{reference}"))
                      / m.median("unheard/cycle"))


def in_c2c(case, figure, quietest=False):
    return lambda m: ((m.quietest(case, figure) if quietest else m.median(case, figure)) / m.median(case, "c2c_ns"))


# Those whose publish and way to the callback are held against a raw ring.
AS_A_RING = LANES[:2]


def paced(rate):
    at = f"per_second:{rate}"
    word = {100000: "100 k/s", 1000000: "1 M/s"}[rate]
    against = () if rate != 100000 else tuple(
        Part(f"{title} against a raw ring, {word}", "ratio", "<=", 2,
             ratio(f"publish_paced/{lane}/{at}", f"publish_paced/raw_ring/{at}")) for title, lane in AS_A_RING)
    return against + tuple(
        Part(f"{title}, {word}", "c2c", "<=", 0.05, in_c2c(f"publish_paced/{lane}/{at}", "value"),
             floor=in_c2c(f"publish_paced/raw_ring/{at}", "value")) for title, lane in AS_A_RING) + (
        Part(f"moodycamel lane against raw, {word}", "ratio", "<=", 1.05,
             ratio(f"publish_paced/bus_moodycamel/{at}", f"publish_paced/raw_moodycamel/{at}")),)


def tail(m, case):
    return m.quarter(case, "p90") / m.quarter(case, "p50")


def hot(rate):
    at = f"per_second:{rate}"
    word = {100000: "100 k/s", 1000000: "1 M/s"}[rate]

    def quiet(case, reference):
        return lambda m: m.quietest(case, "p99") / m.quietest(reference, "p99")

    queue, raw_queue, raw_ring = (f"latency/{name}/{at}" for name in ("bus_moodycamel", "raw_moodycamel", "raw_ring"))
    parts = []
    for title, lane in AS_A_RING:
        case = f"latency/{lane}/{at}"
        parts += [
            Part(f"{title} p50 against a raw ring, {word}", "ratio", "<=", 1.15, ratio(case, raw_ring)),
            Part(f"{title} p90 over p50 against a raw ring's, {word}", "ratio", "<=", 1,
                 lambda m, case=case: tail(m, case) / tail(m, raw_ring)),
            Part(f"{title} p50 against the fastest bare queue, {word}", "ratio", "<=", 1,
                 lambda m, case=case: m.median(case) / best(m, [f"latency/{peer}/{at}" for peer in BARE], min)),
            Part(f"{title} p50, {word}", "c2c", "<=", 1.5, in_c2c(case, "p50"), floor=in_c2c(raw_ring, "p50")),
            Part(f"{title} quiet p99, {word}", "c2c", "<=", 2.5, in_c2c(case, "p99", quietest=True),
                 floor=in_c2c(raw_ring, "p99", quietest=True))]
    return (*parts,
            Part(f"moodycamel lane p50 against raw, {word}", "ratio", "<=", 1.05, ratio(queue, raw_queue)),
            Part(f"moodycamel lane quiet p99 against raw, {word}", "ratio", "<=", 1.05, quiet(queue, raw_queue)),
            Part(f"moodycamel lane p90 over p50, {word}", "ratio", "<=", 1.25, lambda m: tail(m, queue)))


def per_callback(m, lane, subscribers):
    """What one more callback costs without the hand-over, compared with the better of two bare loops."""
    at = "dispatch/{}/subscribers:{}".format
    one_more = (m.median(at(lane, subscribers)) - m.median(at(lane, 1))) / (subscribers - 1)
    bare = min(m.median(at(order, subscribers)) for order in ("bare_by_event", "bare_by_subscriber"))
    return one_more / (bare / subscribers)


def slowed(question, rate):
    at = f"{question}/{{}}/changes_per_second:{{}}".format
    return lambda m, lane: m.median(at(lane, rate)) / m.median(at(lane, 0))


def fire_against(case):
    return lambda m: m.median("python/fire/callbacks:1") / m.median(case)


def compiled(case, seconds):
    """Seconds are meant of a machine on which a file that includes <functional> takes 0.25; elsewhere the ratio to it counts."""
    times = seconds / 0.25
    return (Part(f"a file that {case}, against one that includes <functional>", "ratio", "<=", times,
                 ratio(f"headers/{case}", "headers/functional"), by_class=False),
            Part(f"a file that {case}, where <functional> takes 0.25 s at most", "s", "<=", seconds,
                 lambda m: m.median(f"headers/{case}"), by_class=False,
                 floor=lambda m: times * m.median("headers/functional")))


FLAT_OUT = 1000000000
PARKING = tuple(f"latency/{peer}/per_second:100000" for peer in ("mutex_condvar", "blocking_moodycamel", "eventpp"))
SHARED = tuple(f"publishers/{peer}/publishers:16"
               for peer in ("mutex_condvar", "blocking_moodycamel", "tbb_queue", "boost_lockfree", "atomic_queue", "rigtorp_mpmc",
                            "zeromq_inproc"))
BARE = ("atomic_queue_spsc", "atomic_queue", "rigtorp_spsc", "rigtorp_mpmc", "rigtorp_mpmc_1024")
SIZE = "payload_bytes:32"

ROWS = (
    Row("1", "publish, nobody listens", (
        Part("wanted() above load and branch", "cycles", "<=", 1, cycles_above("bus_wanted"), by_class=False),
        Part("publish_with() above load and branch", "cycles", "<=", 1, cycles_above("bus_publish_with"), by_class=False),
        Part("publish_with()", "ns", "<=", 1, lambda m: m.median("unheard/bus_publish_with"), by_class=False),
        Part("publish_with() above an LTTng tracepoint that is off", "cycles", "<=", 1,
             cycles_above("bus_publish_with", "lttng_ust_off"), by_class=False),
        Part("mutex registry against publish_with()", "ratio", ">=", 20,
             ratio("inline/mutex_registry/subscribers:0", "unheard/bus_publish_with"), by_class=False),
        Part("Python registry against publish_with()", "ratio", ">=", 150,
             ratio("python/fire/callbacks:0", "unheard/bus_publish_with"), by_class=False))),
    Row("2a", "publish in a burst, worker awake", (
        Part("moodycamel lane alone, against raw", "ratio", "<=", 1.35,
             ratio(f"publish_alone/bus_moodycamel/{SIZE}", f"publish_alone/raw_moodycamel/{SIZE}")),
        Part("moodycamel lane live, against raw", "ratio", "<=", 1.1,
             ratio("publish_live/bus_moodycamel", "publish_live/raw_moodycamel")),
        Part("moodycamel lane live, against quill", "ratio", "<=", 0.4,
             ratio("publish_live/bus_moodycamel", "publish_live/quill"),
             floor=ratio("publish_live/raw_moodycamel", "publish_live/quill")),
        *(Part(f"{title} live, against a raw ring", "ratio", "<=", 1.5, ratio(f"publish_live/{lane}", "publish_live/raw_ring"))
          for title, lane in AS_A_RING),
        *(Part(f"{title} live, against quill", "ratio", "<=", 0.4, ratio(f"publish_live/{lane}", "publish_live/quill"),
               floor=ratio("publish_live/raw_ring", "publish_live/quill")) for title, lane in AS_A_RING))),
    Row("2b", "publish now and then, worker awake", paced(100000) + paced(1000000)),
    Row("2c", "publish that must wake a worker",
        for_lanes("call against a bare futex call", "ratio", "<=", 1.15,
                  lambda m, lane: m.median(f"wake/{lane}", "call_ns") / m.median("wake/bare_futex", "call_ns"))
        + for_lanes("wakes for each silence", "wakes", "<=", 1,
                    lambda m, lane: m.median(f"wake/{lane}", "wakes_per_silence"), margin=0.0)),
    Row("3", "publish to callback, worker awake", hot(1000000) + hot(100000)),
    Row("4", "publish to callback, worker asleep; idle",
        for_lanes("p50 against a bare futex wake", "ratio", "<=", 1.05,
                  lambda m, lane: m.median(f"wake/{lane}") / m.median("wake/bare_futex"))
        + for_lanes("p90 against a bare futex wake", "ratio", "<=", 1.2,
                    lambda m, lane: m.median(f"wake/{lane}", "p90") / m.median("wake/bare_futex", "p90"))
        + (Part("idle bus, CPU", "% of a core", "<=", 0.05,
                lambda m: m.median("idle_cpu/bus/realtime_ms:0"), by_class=False),)),
    Row("4b", "publish to callback at 100 k/s, parking allowed",
        for_lanes("against hot", "ratio", "<=", 1.1,
                  lambda m, lane: (m.median(f"latency/{lane}_standard/per_second:100000")
                                   / m.median(f"latency/{lane}/per_second:100000")))
        + tuple(Part(f"best peer that parks against, {title}", "ratio", ">=", 40,
                     parking_against(f"{lane}_standard"), floor=parking_against(RAW[lane]))
                for title, lane in LANES)),
    Row("5a", "throughput, one subscriber", (
        Part("moodycamel lane against the best raw loop", "ratio", ">=", 0.9,
             lambda m: (m.median(f"throughput/bus_moodycamel/{SIZE}")
                        / max(m.median(f"throughput/{raw}/{SIZE}")
                              for raw in ("raw_moodycamel", "raw_moodycamel_single", "raw_moodycamel_bulk"))),
             margin=NOISE_THROUGHPUT),
        *(Part(f"{title} against a raw ring", "ratio", ">=", 0.9,
               ratio(f"throughput/{lane}/{SIZE}", f"throughput/raw_ring/{SIZE}"), margin=NOISE_THROUGHPUT)
          for title, lane in AS_A_RING),
        *(Part(f"{title} against eventpp", "ratio", ">=", 15,
               ratio(f"throughput/{lane}/{SIZE}", f"throughput/eventpp/{SIZE}"), margin=NOISE_THROUGHPUT,
               floor=ratio(f"throughput/{RAW[lane]}/{SIZE}", f"throughput/eventpp/{SIZE}"))
          for title, lane in LANES))
        + for_lanes("p10 over the median", "ratio", ">=", 0.8,
                    lambda m, lane: m.evenness(f"throughput/{lane}/{SIZE}"), margin=NOISE_THROUGHPUT)),
    Row("5b", "throughput, 4 and 16 subscribers",
        for_lanes("one more callback against a bare loop, 4", "ratio", "<=", 1.3,
                  lambda m, lane: per_callback(m, lane, 4))
        + for_lanes("one more callback against a bare loop, 16", "ratio", "<=", 1.3,
                    lambda m, lane: per_callback(m, lane, 16))
        + (Part("ring lane, 16 subscribers", "M callbacks/s", ">=", 500,
                lambda m: 16e-6 * m.median("fan_out/bus_ring/subscribers:16"), margin=NOISE_THROUGHPUT),)),
    Row("6a", "publish while subscribers come and go",
        for_lanes("slower at 10 k changes a second", "ratio", "<=", 1.02, slowed("publish_churn", 10000),
                  margin=NOISE_THROUGHPUT)
        + for_lanes("slower flat out", "ratio", "<=", 1.3, slowed("publish_churn", FLAT_OUT), margin=NOISE_THROUGHPUT)
        + for_lanes("changes a second, flat out", "M/s", ">=", 0.5,
                    lambda m, lane: 1e-6 * m.median(f"publish_churn/{lane}/changes_per_second:{FLAT_OUT}",
                                                    "changes_per_second"), margin=NOISE_THROUGHPUT)),
    Row("6b", "dispatch to 4 subscribers while others come and go",
        for_lanes("slower at 10 k changes a second", "ratio", "<=", 1.05, slowed("dispatch_churn", 10000),
                  margin=NOISE_THROUGHPUT)
        + for_lanes("slower flat out", "ratio", "<=", 3, slowed("dispatch_churn", FLAT_OUT), margin=NOISE_THROUGHPUT)),
    Row("7", "memory", (
        Part("queued event above its slot", "bytes", "<=", 10,
             lambda m: m.median("memory_event/bus_segments") - m.median("memory_event/bus_segments", "slot_bytes"),
             margin=0.0, by_class=False),
        Part("queued event above its slot, moodycamel lane", "bytes", "<=", 10,
             lambda m: m.median("memory_event/bus_moodycamel") - m.median("memory_event/bus_moodycamel", "slot_bytes"),
             margin=0.0, by_class=False),
        Part("idle channel with subscriber and lane", "bytes", "<=", 10240,
             lambda m: m.median("memory_channel/bus_segments"), margin=0.0, by_class=False))
        + for_lanes("allocations in a million events", "calls", "<=", 0,
                    lambda m, lane: m.median(f"memory_steady/{lane}"), margin=0.0, by_class=False)),
    Row("8a", "CPU for each publish, 16 publishers against 1",
        for_lanes("against one publisher", "ratio", "<=", 1.5,
                  lambda m, lane: (m.median(f"publishers/{lane}/publishers:16", "cpu_ns_per_publish")
                                   / m.median(f"publishers/{lane}/publishers:1", "cpu_ns_per_publish")),
                  margin=NOISE_THROUGHPUT)),
    Row("8b", "throughput, 16 publishers",
        for_lanes("against one publisher", "ratio", ">=", 0.6,
                  lambda m, lane: (m.median(f"publishers/{lane}/publishers:16")
                                   / m.median(f"publishers/{lane}/publishers:1")), margin=NOISE_THROUGHPUT)
        + tuple(Part(f"against the next best system, {title}", "ratio", ">=", 1.2 if lane == "bus_moodycamel" else 2.5,
                     lambda m, lane=lane: m.median(f"publishers/{lane}/publishers:16") / best(m, SHARED, max),
                     margin=NOISE_THROUGHPUT) for title, lane in LANES)),
    Row("9", "against a registry in Python", (
        *(Part(f"fire with one callback against a live publish, {title}", "ratio", ">=", 40,
               fire_against(f"publish_live/{lane}"), floor=fire_against(f"publish_live/{RAW[lane]}")) for title, lane in LANES),
        Part("hand-over to a thread against publish to callback", "ratio", ">=", 60,
             lambda m: m.median("python/hand_over") / m.median("latency/bus_segments/per_second:100000")),
        Part("publish from Python against a fire with one callback", "ratio", "<=", 1,
             ratio("python/publish", "python/fire/callbacks:1"), by_class=False),
        *(Part(f"{what} from Python against channel.publish of the same fields, heard", "ratio", "<=", most,
               lambda m, case=f"python/form_{form}_ratio/heard:1": m.median(case), by_class=False)
          for what, form, most in (("bus.publish(event)", "event", 1.5), ("bus.publish(name, fields)", "name", 2),
                                   ("bus.step", "step", 2.5))))),
    Row("10a", "our part of a CUDA call that is heard", (
        Part("against twice a bare enqueue with its two looks at the clock", "ratio", "<=", 1,
             lambda m: ((m.median("cuda_call/heard") - m.median("cuda_call/empty_callback"))
                        / (2 * m.median("cuda_call/bare_enqueue"))), by_class=False),)),
    Row("10b", "a CUDA call that is enabled while nobody listens", (
        *(Part(f"each edge, {when}", "cycles", "<=", 10,
               lambda m, case=case: ((m.median(f"cuda_call/{case}") - m.median("cuda_call/empty_callback"))
                                     / 2 / m.median("cuda_call/cycle")), by_class=False)
          for when, case in (("the last listener has just left", "nobody_listens"),
                             ("CUPTI tells of it though it is switched off", "switched_off"))),)),
    Row("10c", "memory of a thread's events of one kind", (
        Part("each thread and kind, with the thread itself", "bytes", "<=", 1 << 20,
             lambda m: m.median("cuda_memory/thread_and_kind"), by_class=False),
        Part("lost at 200 k calls a second into a bus that sleeps", "events", "<=", 0,
             lambda m: m.median("cuda_loss/sleeping_bus"), margin=0.0, by_class=False))),
    Row("10d", "a live handle of CUDA's", (
        Part("each", "bytes", "<=", 32, lambda m: m.median("cuda_memory/live_handle"), margin=0.0, by_class=False),)),
    Row("10e", "arming a point of a CUDA stream, without the driver's calls", (
        *(Part(f"against a ring lane's publish{how}", "ratio", "<=", 2,
               lambda m, case=case: ((m.median("completions/arm") - m.median("completions/drivers_calls"))
                                     / m.median(f"completions/{case}")), by_class=False)
          for how, case in (("", "ring_publish"), (" that looks at the clock, as arming does", "ring_publish_stamped"))),)),
    Row("10f", "completions while nothing is armed", (
        Part("a bus with a poller", "% of a core", "<=", 0.05, lambda m: m.median("completions_idle/poller"), by_class=False),)),
    Row("10g", "a call through CUDA's wrapper", (
        Part("while nobody listens, more than the same call by a pointer", "cycles", "<=", 4,
             lambda m: ((m.median("traced/unheard") - m.median("traced/straight")) / m.median("cuda_call/cycle")), by_class=False),
        Part("heard, against the call by a pointer with our part of one that CUPTI tells of", "ratio", "<=", 1.25,
             lambda m: (m.median("traced/heard")
                        / (m.median("traced/straight") + m.median("cuda_call/heard") - m.median("cuda_call/empty_callback"))),
             by_class=False))),
    Row("11a", "an operation that a backend reports while nobody listens", (
        Part("issue and completion against a load, a branch and a cycle", "ratio", "<=", 2,
             lambda m: (m.median("collective/unheard")
                        / (m.median("unheard/load_and_branch") + m.median("unheard/cycle"))), by_class=False),)),
    Row("11b", "an operation that a worker hears of", (
        Part("issue and completion against two bare enqueues with two looks at the clock", "ratio", "<=", 2,
             ratio("collective/heard", "collective/bare_enqueues"), by_class=False),)),
    Row("11c", "one hook more", (
        Part("on an operation, against a bare call through a pointer", "ratio", "<=", 3,
             lambda m: m.median("hooks/one_more", "times_bare"), by_class=False),)),
    Row("11d", "an operation with 4 hooks while others come and go", (
        Part("slower at 10 k changes a second", "ratio", "<=", 1.05,
             lambda m: m.median("hooks_churn/operation", "times_still"), margin=NOISE_THROUGHPUT),)),
    Row("11e", "4 hooks that two threads call at once", (
        Part("an operation against functions in a locked map", "ratio", ">=", 3,
             ratio("hooks_two_threads/locked_map", "hooks_two_threads/operation"), margin=NOISE_THROUGHPUT),
        Part("the hooks alone against functions in a locked map", "ratio", ">=", 3,
             ratio("hooks_two_threads/locked_map", "hooks_two_threads/row"), margin=NOISE_THROUGHPUT))),
    Row("12g", "what NCCL tells its profiler plugin", (
        Part("a span of which somebody hears, begin and end, against a bare enqueue with two looks at the clock", "ratio", "<=", 2,
             ratio("nccl_span/heard", "nccl_span/bare_enqueue"), by_class=False),
        Part("a callback of a kind that nobody hears, more than one of an empty plugin", "cycles", "<=", 10,
             lambda m: ((m.median("nccl_span/unheard_start") - m.median("nccl_span/empty_start")) / m.median("nccl_span/cycle")),
             by_class=False))),
    Row("12h", "a call through NCCL's wrapper", (
        Part("while nothing is attached, more than the same call by a pointer", "cycles", "<=", 10,
             lambda m: ((m.median("nccl_wrapper/unattached") - m.median("nccl_wrapper/straight")) / m.median("nccl_wrapper/cycle")),
             by_class=False),
        Part("attached, while nobody listens, more than the same call by a pointer", "cycles", "<=", 10,
             lambda m: ((m.median("nccl_wrapper/unheard") - m.median("nccl_wrapper/straight")) / m.median("nccl_wrapper/cycle")),
             by_class=False),
        Part("heard to its end, against two bare enqueues with two looks at the clock", "ratio", "<=", 2,
             ratio("nccl_wrapper/heard", "nccl_wrapper/bare_enqueues"), by_class=False))),
    Row("12i", "memory of what NCCL's plugin keeps", (
        Part("an open event", "bytes", "<=", 256, lambda m: m.median("nccl_memory/open_event"), margin=0.0, by_class=False),
        Part("a communicator", "bytes", "<=", 16384, lambda m: m.median("nccl_memory/communicator"), margin=0.0, by_class=False))),
    Row("12j", "a burst of NCCL's into a bus that is full", (
        Part("of 20,000 operations, neither heard nor counted as lost", "events", "<=", 0, lambda m: m.median("nccl_loss/burst"),
             margin=0.0, by_class=False),)),
    Row("12k", "a plugin behind ringmain's", (
        Part("an operation, begin and end, against the same plugin called directly", "ratio", "<=", 1.2,
             ratio("nccl_chain/chained", "nccl_chain/called_directly"), by_class=False),)),
    Row("13a", "a publish that is only recorded", (
        Part("against a bare enqueue of its slot with a look at the clock", "ratio", "<=", 1.5,
             ratio("flight/recorded", "flight/bare_enqueue"), by_class=False),)),
    Row("13b", "eight threads that record", (
        Part("CPU time for each event against one thread", "ratio", "<=", 1.2,
             lambda m: m.median("flight_threads/recorded", "times_one"), by_class=False),)),
    Row("13c", "a publish that is only recorded, beside LTTng", (
        Part("against an LTTng-UST tracepoint of the same bytes, on, in snapshot mode", "ratio", "<=", 0.5,
             ratio("flight/recorded", "flight/lttng_ust_on"), by_class=False),)),
    Row("13d", "memory of a record", (
        Part("more than payload and 48 bytes, rounded up to 64", "bytes", "<=", 0,
             lambda m: m.median("flight_memory/surplus"), margin=0.0, by_class=False),)),
    Row("14", "including ringmain, CPU time of a compiler", (*compiled("publishes", 0.5), *compiled("subscribes", 1))),
)


def judge(measures):
    return [row.judge(measures) for row in ROWS]


def judged_cases():
    """All cases that some row is computed from."""
    return set().union(*(part.cases() for row in ROWS for part in row.parts))
