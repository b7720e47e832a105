"""One rank's process group, hooks on it, and what was said of it: written down for tests_of_collectives.py to judge.

usage: group_hooks.py CASE BACKEND FILE. BACKEND is nccl; gloo; or stand-in, which is gloo under a name of which ringmain does
not know, as it does not of NCCL, when an operation ends. Ends with 77 where this PyTorch has no such backend, and says so.
"""

import json
import sys
from pathlib import Path


def skip(why):
    print(f"{sys.executable}: {why}", file=sys.stderr)
    sys.exit(77)


try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    skip(f"there is no PyTorch ({error})")
if not dist.is_available() or not dist.is_backend_available("nccl" if "nccl" in sys.argv else "gloo"):
    skip(f"PyTorch {torch.__version__} has no process groups of this backend")
if "nccl" in sys.argv and not torch.cuda.is_available():
    skip(f"PyTorch {torch.__version__} cannot use the GPU")

import ringmain
import ringmain.torch
from ringmain import comms
from ringmain.torch import CollectiveVetoed
from torch.nn.parallel import DistributedDataParallel

ROUNDS = 5


class Seen:
    """What happened, in order."""

    def __init__(self, backend):
        self.backend = backend
        self.called, self.pre, self.post, self.ended, self.events = [], [], [], [], []
        self.facts = {}

    def hook(self, group):
        hooks = comms.hooks_of(group)
        hooks.register_pre_hook(lambda args: self.pre.append([args.op_id, args.name.value]))
        hooks.register_post_hook(lambda op_id, args: self.post.append([op_id, args.outcome]))
        hooks.register_completion_hook(lambda end: self.ended.append(end.op_id))
        return hooks

    def hear(self, batch):
        for event in batch:
            fields = event._asdict()
            self.events.append({key: fields[key] for key in ("op", "op_id", "how", "reason", "source") if key in fields}
                               | {"channel": batch.channel})

    def counts(self):
        """So far: calls of pre hooks, of post hooks, what was said to be issued, all events."""
        issued = sum(event["channel"] == "collective.issued" for event in self.events)
        return [len(self.pre), len(self.post), issued, len(self.events)]

    def counts_since(self, before):
        return [now - was for now, was in zip(self.counts(), before, strict=True)]


def begin(backend):
    """Returns the device. One rank, which nobody else has to meet."""
    name, options = backend, {}
    if backend == "stand-in":
        name = "standin"
        dist.Backend.register_backend(name, lambda store, rank, size, limit: dist.ProcessGroupGloo(store, rank, size, limit), devices=["cpu"])
    if backend == "nccl":
        torch.cuda.set_device(0)
        options["device_id"] = torch.device("cuda", 0)
    dist.init_process_group(name, store=dist.HashStore(), rank=0, world_size=1, **options)
    return "cuda" if backend == "nccl" else "cpu"


def settle(device):
    """The GPU has done what it was asked."""
    if device == "cuda":
        torch.cuda.synchronize()


def calls(device):
    """(name, the call with its output, which is ones after it). That of all_reduce, broadcast and barrier is ones before it, too:
    on one rank only the backend's number tells that they were made."""
    def ones():
        return torch.ones(256, device=device)

    def zeros():
        return torch.zeros(256, device=device)

    def into(call, *args):
        return lambda out, **how: call(out, *args, **how)

    def list_into(call, *args):
        return lambda out, **how: call([out], *args, **how)

    same = [("all_reduce", lambda out, **how: dist.all_reduce(out, **how)),
            ("broadcast", lambda out, **how: dist.broadcast(out, 0, **how))]
    filled = [("all_gather", list_into(dist.all_gather, ones())), ("all_gather_into_tensor", into(dist.all_gather_into_tensor, ones())),
              ("reduce_scatter", into(dist.reduce_scatter, [ones()])), ("reduce_scatter_tensor", into(dist.reduce_scatter_tensor, ones()))]
    return [(name, call, ones()) for name, call in same] + [(name, call, zeros()) for name, call in filled] + [
        ("barrier", lambda out, **how: dist.barrier(**how), ones())]


def call_each(seen, device, rounds=ROUNDS):
    """Each kind, in turns synchronous and asynchronous."""
    for turn in range(rounds):
        for name, call, out in calls(device):
            seen.called.append(name)
            work = call(out, async_op=bool(turn % 2))
            if work is not None:
                work.wait()
            settle(device)
            if not bool((out == 1).all()):
                sys.exit(f"{name} did not do what it is for: ringmain is in its way")


def number(group):
    """How many its backend was called for."""
    return group._get_sequence_number_for_group()


def case_kinds(seen, device, group, attachment):
    """Each of them reaches the backend, once. The stand-in does not count."""
    seen.hook(group)
    counts = seen.backend != "stand-in"
    before = number(group) if counts else 0
    call_each(seen, device)
    made = number(group) - before if counts else len(seen.called)
    if made != len(seen.called):
        sys.exit(f"the backend was called {made} times for {len(seen.called)} operations: ringmain is in its way")


def case_refusal(seen, device, group, attachment):
    """A hook refuses each kind; then it is taken away, and all goes on."""
    hooks = seen.hook(group)
    guard = hooks.register_pre_hook(lambda args: "not today")
    refused, before = [], number(group)
    for name, call, out in calls(device):
        was = out.clone()
        try:
            call(out)
        except CollectiveVetoed as refusal:
            settle(device)
            refused.append([name, refusal.reason, bool(torch.equal(out, was))])
        except Exception as other:
            refused.append([name, f"{type(other).__name__}: {other}", False])
        else:
            refused.append([name, "not refused", False])
    seen.facts = {"refused": refused, "numbers_taken": number(group) - before, "removed": str(guard.remove())}
    call_each(seen, device, 1)


def case_detach(seen, device, group, attachment):
    """Before it, after it, and attached again."""
    stale = seen.hook(group)
    call_each(seen, device, 1)
    attachment.bus.flush(30)
    attachment.detach()
    attachment.bus.flush(30)
    before = seen.counts()
    call_each(seen, device, 2)
    attachment.bus.flush(30)
    seen.facts = {"called": len(calls(device)), "before_detach": before[:3], "after_detach": seen.counts_since(before)}
    for word, what in (("hooks_of", lambda: comms.hooks_of(group)), ("stale", lambda: stale.register_pre_hook(print))):
        try:
            what()
            seen.facts[word] = "nothing was raised"
        except Exception as error:
            seen.facts[word] = type(error).__name__
    again = ringmain.torch.attach(attachment.bus, gpu_trace=False)
    before = seen.counts()
    seen.hook(group)
    call_each(seen, device, 1)
    attachment.bus.flush(30)
    seen.facts["attached_again"] = seen.counts_since(before)[:3]
    return again


def case_cpp(seen, device, group, attachment):
    """What PyTorch calls for in C++: DistributedDataParallel, as it is made and in its backward passes."""
    seen.hook(group)
    before = number(group)
    model = DistributedDataParallel(torch.nn.Linear(32, 32).to(device))
    for _ in range(ROUNDS):
        model(torch.ones(4, 32, device=device)).sum().backward()
    settle(device)
    seen.facts = {"numbers_taken": number(group) - before, "backward_passes": ROUNDS}


CASES = {"kinds": case_kinds, "refusal": case_refusal, "detach": case_detach, "cpp": case_cpp}


def main():
    case, backend, file = sys.argv[1:]
    seen = Seen(backend)
    with ringmain.Bus() as bus:
        attachment = ringmain.torch.attach(bus, gpu_trace=False)
        bus.subscribe("collective.*", seen.hear)
        device = begin(backend)
        attachment = CASES[case](seen, device, dist.group.WORLD, attachment) or attachment
        settle(device)
        surface = attachment.report()["torch.distributed"]
        attachment.detach()
        bus.flush(30)
        process_group = torch._C._distributed_c10d.ProcessGroup
        said = {**vars(seen), "torch": str(torch.__version__), "lacks": surface.lacks, "live": surface.live, "errors": surface.errors,
                "last_error": surface.last_error, "hooked": hasattr(process_group, "register_pre_hook")}
        dist.destroy_process_group()
    Path(file).write_text(json.dumps(said))


if __name__ == "__main__":
    main()
