"""C1 to C6: hooks on a process group of one rank, and what is said of it. Over stand-ins the group is gloo's."""

import json
from collections import Counter

from place import Failed

# The call; its word for hooks, which is torchcomms'; its word in events.
KINDS = {"all_reduce": ("all_reduce", "all_reduce"), "broadcast": ("broadcast", "broadcast"), "all_gather": ("all_gather", "all_gather"),
         "all_gather_into_tensor": ("all_gather_single", "all_gather"), "reduce_scatter": ("reduce_scatter", "reduce_scatter"),
         "reduce_scatter_tensor": ("reduce_scatter_single", "reduce_scatter"), "barrier": ("barrier", "barrier")}
ENDS_OF_COLLECTIVES = "the ends of operations on "  # as report() says that it lacks them


def seen_of(place, case, stand_in="gloo"):
    """What the script wrote down. `stand_in`: the backend where there is no NCCL."""
    file = place.folder / f"{case}.json"
    place.with_package("group_hooks.py", case, stand_in if place.fakes else "nccl", str(file))
    seen = json.loads(file.read_text())
    if not seen["live"] or seen["errors"]:
        raise Failed(f"ringmain's surface of torch.distributed: live: {seen['live']}, {seen['errors']} errors, the last: {seen['last_error']}")
    return seen


def about(seen):
    return f"on {seen['backend']}, PyTorch {seen['torch']}, " + ("by its hooks" if seen["hooked"] else "by its methods")


def on(seen, channel):
    return [event for event in seen["events"] if event["channel"] == f"collective.{channel}"]


def must_be(wanted, got, what):
    if wanted != got:
        raise Failed(f"{what}: {str(got)[:200]}, and not {str(wanted)[:200]}")


def judge_once(seen):
    """Each call has one call of the pre hook and one of the post hook, in order, by its name."""
    word = 1 if seen["hooked"] else 0  # PyTorch's own hooks have one word for all_gather and all_gather_into_tensor
    must_be([KINDS[name][word] for name in seen["called"]], [word for _, word in seen["pre"]], "pre hooks were called for")
    must_be([[op_id, "issued"] for op_id, _ in seen["pre"]], seen["post"], "post hooks were called with")
    if not seen["called"]:
        raise Failed("the script called for nothing")
    return f"{len(seen['called'])} operations of {len(set(seen['called']))} kinds, each with one pre and one post hook, {about(seen)}"


def judge_ids(seen):
    """What hooks get as op_id is that of collective.issued, and no two operations share one."""
    issued = {event["op_id"]: event["op"] for event in on(seen, "issued")}
    must_be(len(issued), len(on(seen, "issued")), "ids of so many events")
    must_be(sorted((op_id, KINDS[name][1]) for (op_id, _), name in zip(seen["pre"], seen["called"])), sorted(issued.items()),
            "collective.issued says (op_id, op)")
    must_be({"torch"}, {event["source"] for event in on(seen, "issued")}, "sources")
    if 0 in issued or not issued:
        raise Failed(f"{len(issued)} operations have an id, among them 0: {0 in issued}")
    return f"{len(issued)} operations have the same id in hooks and in collective.issued, {about(seen)}"


def judge_refusal(seen):
    """A refusal is CollectiveVetoed in the program, the backend is not called, and the record is paired."""
    facts = seen["facts"]
    for name, reason, untouched in facts["refused"]:
        must_be(("not today", True), (reason, untouched), f"{name} was refused because, and left its tensor alone")
    must_be(list(KINDS), [name for name, _, _ in facts["refused"]], "refused were")
    must_be(0, facts["numbers_taken"], "numbers that the backend gave to refused operations")
    must_be("done", facts["removed"], "the hook's removal said")
    first = [op_id for op_id, _ in seen["pre"]][:len(KINDS)]
    failed = [(event["op_id"], event["how"], event["reason"]) for event in on(seen, "failed")
              if event["how"] == "vetoed" or event["op_id"] in first]
    must_be(sorted((op_id, "vetoed", "not today") for op_id in first), sorted(failed), "collective.failed says (op_id, how, reason)")
    must_be([[op_id, "refused"] for op_id in first], seen["post"][:len(KINDS)], "post hooks of refused operations")
    issued = [event["op_id"] for event in on(seen, "issued")]
    must_be([2 * len(KINDS)] * 2, [len(issued), len(set(issued))], "events and ids of what was issued, refused operations among them")
    must_be(["issued"] * len(KINDS), [outcome for _, outcome in seen["post"][len(KINDS):]], "once the hook was away")
    return f"{len(first)} kinds refused, none of them reached the backend, {about(seen)}"


def judge_ends(seen):
    """Ends are not said where the future of a Work does not know them (pytorch#48561), and report() says so."""
    issued = Counter(event["op_id"] for event in on(seen, "issued"))
    ends = Counter(event["op_id"] for channel in ("completed", "failed") for event in on(seen, channel))
    if not issued:
        raise Failed("nothing was heard as issued, so that no end can be missed")
    backend = seen["backend"].replace("-", "")
    if seen["backend"] == "gloo":
        must_be(issued, ends, "ends on gloo")
        must_be(sorted(ends), sorted(seen["ended"]), "completion hooks on gloo")
        return f"{len(ends)} ends of gloo's, each said once, {about(seen)}"
    must_be({}, dict(ends), "operations of which an end was said")
    must_be([], seen["ended"], "completion hooks were called for")
    if ENDS_OF_COLLECTIVES + backend not in seen["lacks"]:
        raise Failed(f"report() does not say that it lacks ends on {backend}: {seen['lacks']!r}")
    return f"no end is said of {len(issued)} operations, and report() lacks them, {about(seen)}"


def judge_detach(seen):
    """Before detach() each operation is heard once; after it nothing is called or said; attached again, all is as before."""
    facts = seen["facts"]
    called = facts["called"]
    if not called:
        raise Failed("the script called for nothing")
    must_be([called] * 3, facts["before_detach"], "pre hooks, post hooks and operations said to be issued before detach()")
    must_be([0, 0, 0, 0], facts["after_detach"], "pre hooks, post hooks, operations said to be issued and all events after detach()")
    must_be("LookupError", facts["hooks_of"], "hooks_of() after detach()")
    must_be("ValueError", facts["stale"], "registering on hooks that ended")
    must_be([called] * 3, facts["attached_again"], "pre hooks, post hooks and operations said to be issued when attached again")
    return f"silent after detach(), {called} operations heard once each when attached again, {about(seen)}"


def judge_cpp(seen):
    """What C++ calls for, DDP's reducer: hooks from PyTorch 2.14 on; before, said afterwards, once."""
    issued, taken = on(seen, "issued"), seen["facts"]["numbers_taken"]
    must_be(taken, len({event["op_id"] for event in issued}), "operations of DDP's that were issued")
    must_be(taken, len(issued), "events of them")
    reduced = sum(event["op"] == "all_reduce" for event in issued)
    if reduced < seen["facts"]["backward_passes"]:
        raise Failed(f"{reduced} all-reduces in {seen['facts']['backward_passes']} backward passes")
    if seen["hooked"]:
        must_be(sorted(event["op_id"] for event in issued), sorted(op_id for op_id, _ in seen["pre"]), "pre hooks of DDP's")
        must_be(sorted([op_id, "issued"] for op_id, _ in seen["pre"]), sorted(seen["post"]), "post hooks of DDP's")
    else:
        must_be([[], []], [seen["pre"], seen["post"]], "hooks of what C++ calls for, before PyTorch 2.14")
        if "hooks on it" not in seen["lacks"]:
            raise Failed(f"report() does not say that hooks are not called for what C++ calls for: {seen['lacks']!r}")
    return f"{taken} operations of DDP's, {'each with its hooks' if seen['hooked'] else 'without hooks, and report() says so'}, {about(seen)}"


def c1(place):
    """Pre and post hooks of a group of one rank are called once for each operation, whatever its kind."""
    return judge_once(seen_of(place, "kinds"))


def c2(place):
    """The op_id of a hook is that of collective.issued."""
    return judge_ids(seen_of(place, "kinds"))


def c3(place):
    """A pre hook refuses each kind: CollectiveVetoed, and the backend is not called."""
    return judge_refusal(seen_of(place, "refusal"))


def c4(place):
    """No end is said of what a Work's future does not know, as NCCL's does not."""
    return judge_ends(seen_of(place, "kinds", "stand-in"))


def c5(place):
    """detach() silences hooks and events; attached again, all is as before."""
    return judge_detach(seen_of(place, "detach"))


def c6(place):
    """DDP's reducer calls in C++: hooks from PyTorch 2.14 on, issued alone before."""
    return judge_cpp(seen_of(place, "cpp"))


TESTS = {name: ("collectives", 75, function) for name, function in
         (("C1", c1), ("C2", c2), ("C3", c3), ("C4", c4), ("C5", c5), ("C6", c6))}
