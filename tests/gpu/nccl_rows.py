"""Which of NCCL's events come in which situation? What is known from NCCL's source, a row for each, and what was heard of it.

A row is `confirmed` if all that it says was heard as it says, `refuted` with the first that was not, or `not reached` with the
reason. Columns: a number is for each call of the case (for all replays of a graph, where `of_graph`); SOME is one or more;
None is not looked at.
"""

from collections import Counter
from dataclasses import dataclass, field

SOME = "some"
REPLAYS = 1000
CHANNELS = ("launch", "group", "operation", "proxy_op", "proxy_step", "kernel_channel", "copy_engine")
COLUMNS = ("group_api", "api", *CHANNELS)
ONE, TWO, SOCKETS = "one rank", "two ranks on one GPU", "two ranks over sockets"


@dataclass(frozen=True)
class Row:
    case: str  # of programs/nccl_calls.cpp, and the name of its communicator
    says: str
    over: str  # ONE, TWO or SOCKETS
    kernels: bool  # are kernel channels asked for?
    columns: dict = field(default_factory=dict)
    since: int = 0  # NCCL's version code
    before: int = 99999
    of_graph: bool = False
    second: str = ""  # another communicator of the case

    @property
    def name(self):
        return f"{self.says}, {self.over}, kernel channels {'asked for' if self.kernels else 'not asked for'}"


def columns(group_api=1, api=1, launch=1, group=1, operation=1, proxy_op=0, proxy_step=0, kernel_channel=0, copy_engine=0):
    return dict(zip(COLUMNS, (group_api, api, launch, group, operation, proxy_op, proxy_step, kernel_channel, copy_engine)))


SILENT = columns(0, 0, 0, 0, 0)
CALLS_ONLY = columns(1, 1, 0, 0, 0)


def rows_of_work():
    """Those that are asked for with kernel channels and without."""
    for kernels in (False, True):
        seen = SOME if kernels else 0
        yield Row("alone", "a collective of one rank", ONE, kernels, SILENT)
        yield Row("self", "send and receive to oneself", ONE, kernels, columns(api=2, operation=2, kernel_channel=seen))
        for over, moved in ((TWO, 0), (SOCKETS, SOME)):
            yield Row("reduce", "a collective", over, kernels, columns(proxy_op=moved, proxy_step=moved, kernel_channel=seen))
            yield Row("nothing", "a collective of no elements", over, kernels, SILENT)
            yield Row("all_to_all", "an all-to-all", over, kernels,
                      columns(api=4, launch=SOME, group=SOME, operation=4, proxy_op=moved, proxy_step=moved, kernel_channel=seen), since=22803)
            yield Row("broadcast", "a broadcast", over, kernels, CALLS_ONLY, since=22900)
            yield Row("one_sided", "a put with a signal", over, kernels, SILENT, since=22900)
            yield Row("several", "a group of three calls on two communicators", over, kernels,
                      columns(group_api=1, api=3, launch=SOME, group=SOME, operation=3, proxy_op=moved, proxy_step=moved, kernel_channel=seen),
                      second="several_second")
            yield Row("symmetric", "a collective on symmetric memory", over, kernels, CALLS_ONLY, since=22703, before=23100)
            yield Row("symmetric", "a collective on symmetric memory", over, kernels,
                      columns(launch=None, group=None, operation=1, kernel_channel=seen), since=23100)
            yield Row("copy_engine", "a collective by copy engines", over, kernels, CALLS_ONLY, since=22800, before=22900)
            yield Row("copy_engine", "a collective by copy engines", over, kernels, {**CALLS_ONLY, "copy_engine": SOME}, since=22900)


def rows_of_graphs():
    """`api` and `launch` once, as it is captured; the rest once in all, or at each launch."""
    for case, over, calls, moved in (("self_graph", ONE, 2, 0), ("reduce_graph", TWO, 1, 0), ("reduce_graph", SOCKETS, 1, SOME)):
        for kernels in (False, True):
            each = REPLAYS if kernels or moved else 1
            yield Row(case, "a graph that is launched 1,000 times", over, kernels,
                      columns(api=calls, launch=1, group=each, operation=calls * each, proxy_op=moved, proxy_step=moved,
                              kernel_channel=SOME if kernels else 0), of_graph=True)


ABORTED = [Row("abort", "an abort: what runs has no end", over, True) for over in (ONE, TWO, SOCKETS)]
ROWS = [*rows_of_work(), *rows_of_graphs(), *ABORTED]


def counted(events, row):
    """How many events each column has."""
    of_case = [one for one in events if one.get("group") in (row.case, row.second) and one["channel"].startswith("nccl.")]
    count = Counter(one["channel"].removeprefix("nccl.") for one in of_case)
    calls = Counter(one["kind"] == "group" for one in of_case if one["channel"] == "nccl.api")
    return {"group_api": calls[True], "api": calls[False], **{channel: count[channel] for channel in CHANNELS}}


def unlike(wanted, got, times):
    return wanted is not None and (got == 0 if wanted == SOME else got != wanted * times)


def judge(row, version, told, events):
    """(verdict, why). `told`: the program's line of this case; None: it did not come to it."""
    if not row.since <= version < row.before:
        return "not reached", f"this is NCCL {version}"
    if told is None:
        return "not reached", "the program did not come to it"
    if told["result"] != 0:
        return "not reached", f"{told['refused']} " + ("is not in this NCCL" if told["result"] == -1 else f"answered {told['result']}")
    if told["calls"] == 0:
        return "not reached", "nothing was called for"
    got = counted(events, row)
    if row.case == "abort":
        return judge_abort(row, events, got)
    # What is taken in place of the way that the row is about tells nothing of the row.
    if row.case in ("symmetric", "copy_engine") and got["operation"] and not is_that_way(row, events):
        return "not reached", f"NCCL took its usual way: {got['operation']} operations"
    times = 1 if row.of_graph or row.second else told["calls"]
    for column in COLUMNS:
        if unlike(row.columns.get(column), got[column], times):
            wanted = row.columns[column]
            return "refuted", f"{column}: {got[column]}, and not {wanted if wanted == SOME else wanted * times}"
    if row.second:
        return judge_group(row, events)
    if row.of_graph:
        return judge_graph(row, events, got)
    return "confirmed", ", ".join(f"{column} {number}" for column, number in got.items() if number) or "no event"


def is_that_way(row, events):
    operations = [one for one in events if one["channel"] == "nccl.operation" and one["group"] == row.case]
    return row.case == "symmetric" and all(one["symmetric"] for one in operations)


def judge_group(row, events):
    """The group's one call is told in the context of its first communicator; each communicator has its own plan."""
    owners = {one["group"] for one in events if one["channel"] == "nccl.api" and one.get("kind") == "group"
              and one["group"] in (row.case, row.second)}
    if owners != {row.case}:
        return "refuted", f"the group is told of {sorted(owners)}"
    for channel in ("nccl.launch", "nccl.group", "nccl.operation"):
        groups = {one["group"] for one in events if one["channel"] == channel and one.get("group") in (row.case, row.second)}
        if groups != {row.case, row.second}:
            return "refuted", f"{channel} is told of {sorted(groups)} only"
    return "confirmed", "one group, of the first communicator; plans of both"


def judge_graph(row, events, got):
    """Where replays are told they are told in a thread that is not the program's."""
    if not all(one["captured"] for one in events if one["channel"] == "nccl.api" and one["group"] == row.case):
        return "refuted", "a call that was captured is not said to be"
    if row.columns["group"] == 1:
        return "confirmed", "told once, as it was captured"
    callers = {one["thread"] for one in events if one["channel"] == "nccl.api" and one["group"] == row.case}
    replayed = {one["thread"] for one in events if one["channel"] == "nccl.group" and one["group"] == row.case}
    if callers & replayed:
        return "refuted", "replays are told in the thread that captured"
    return "confirmed", f"{got['group']} replays, told in {len(replayed)} other threads"


def judge_abort(row, events, got):
    ends = Counter(one["ending"] for one in events if one.get("group") == row.case and "ending" in one)
    if ends["aborted"]:
        return "confirmed", f"{ends['aborted']} spans without an end, {ends['stopped']} with one"
    if row.over == ONE or not (got["kernel_channel"] or got["proxy_op"]):
        return "not reached", "nothing of it was under way when it was aborted"
    return "refuted", f"all {ends['stopped']} spans were ended"
