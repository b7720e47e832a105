#!/usr/bin/env python3
"""What does ringmain.torch cost a compile, and a training step of two ranks?

Two figures for each. "ours": the CPU time of our own code, hook by hook (this thread's clock, read before and after each
call; the cost of the reading is printed, and is included) and of the bus's threads, as a share of the CPU time of the process.
"A/B": the same work with and without us, in turn in one process, as the ratio of each pair, its median and the 95 %
interval of the median (bootstrap), of wall time and of the process's CPU time: that also holds what PyTorch does
because we listen. Other work on the machine is in the wall times and hardly in the CPU times.

usage: bench_torch.py [--rounds N] [--steps N] [--json FILE], with the package on PYTHONPATH; some minutes on 2 cores.
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

import ringmain
import ringmain.torch
from ringmain.torch import _hooks, _tap

STEPS_PER_BLOCK = 10


class Meter:
    """CPU time spent inside our hooks."""

    def __init__(self):
        self.took_ns, self.calls = {}, {}

    def around(self, name, call):
        def metered(*arguments, **more):
            began = time.thread_time_ns()
            try:
                return call(*arguments, **more)
            finally:
                self.took_ns[name] = self.took_ns.get(name, 0) + time.thread_time_ns() - began
                self.calls[name] = self.calls.get(name, 0) + 1
        return metered

    def install(self):
        """Before anything attaches: hooks are bound methods of these."""
        _tap._Handler.emit = self.around("trace records", _tap._Handler.emit)
        _tap._Wanted._wanted = self.around("is a record wanted?", _tap._Wanted._wanted)
        _hooks.CompileCallbacks._started = self.around("start callbacks", _hooks.CompileCallbacks._started)
        _hooks.CompileCallbacks._ended = self.around("end callbacks", _hooks.CompileCallbacks._ended)

    def meter_guards(self, attachment):
        """The guard hook is native and stands in PyTorch's slot: a metered one takes its place."""
        [surface] = [s for s in attachment._surfaces if isinstance(s, _hooks.GuardVerdicts)]
        surface._set(self.around("guard verdicts", surface._hook))

    def restore_guards(self, attachment):
        [surface] = [s for s in attachment._surfaces if isinstance(s, _hooks.GuardVerdicts)]
        surface._set(surface._hook)

    def take(self):
        taken = {name: (self.calls[name], took) for name, took in self.took_ns.items()}
        self.took_ns, self.calls = {}, {}
        return taken


def add(sums, taken):
    for name, (calls, ns) in taken.items():
        before = sums.get(name, (0, 0))
        sums[name] = before[0] + calls, before[1] + ns


def bus_threads_ns(own):
    """CPU time of all threads of this process that `own` names: the bus's workers, housekeeper and dispatcher."""
    total = 0
    for task in own:
        try:
            total += int(Path(f"/proc/self/task/{task}/schedstat").read_text().split()[0])
        except OSError:
            pass  # it has ended
    return total


def tasks():
    return {int(name) for name in os.listdir("/proc/self/task")}


def interval(ratios, seed=1):
    """Median of the ratios and the 95 % interval of that median."""
    chance = random.Random(seed)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(2000))
    return {"median": statistics.median(ratios), "low": medians[50], "high": medians[1949], "pairs": len(ratios)}


def listen(bus):
    """Subscribes to everything, as a user would who wants it all: NumPy arrays, in batches."""
    heard = {}

    def hear(batch):
        heard[batch.channel] = heard.get(batch.channel, 0) + len(batch.array)

    bus.subscribe(">", hear)
    return heard


class Times:
    """Wall and CPU time of a piece of work, in ns."""

    def __enter__(self):
        self._began = time.perf_counter_ns(), time.process_time_ns()
        return self

    def __exit__(self, *_):
        self.wall = time.perf_counter_ns() - self._began[0]
        self.cpu = time.process_time_ns() - self._began[1]


def one_compile(backend):
    torch._dynamo.reset()
    model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(8)))
    with Times() as times:
        torch.compile(model, backend=backend)(torch.ones(4, 16)).sum().backward()
    return times


def bench_compiles(backend, rounds, meter):
    """Compiles of a model of 8 layers, forward and backward, without us, attached with nobody listening, and heard."""
    took = {"without": [], "unheard": [], "heard": []}
    ours, bus_ns, spent = {}, 0, 0
    one_compile(backend)  # imports, caches
    for n in range(rounds):
        order = list(took)
        random.Random(n).shuffle(order)
        for how in order:
            if how == "without":
                took[how].append(one_compile(backend))
                continue
            before = tasks()
            with ringmain.Bus() as bus:
                if how == "heard":
                    listen(bus)
                with ringmain.torch.attach(bus):
                    bus.flush(10)
                    own = tasks() - before
                    meter.take()
                    threads_ns = bus_threads_ns(own)
                    took[how].append(one_compile(backend))
                    bus.flush(10)
                    if how == "heard":
                        spent += took[how][-1].cpu
                        bus_ns += bus_threads_ns(own) - threads_ns
                        add(ours, meter.take())
    return report(f"compile, {backend}", took, ours, bus_ns, spent, rounds)


def meter_us():
    """What the meter itself adds to each call."""
    meter = Meter()
    call = meter.around("", lambda: None)
    for _ in range(10_000):
        call()
    return meter.took_ns[""] / 1e3 / 10_000


def report(what, took, ours, bus_ns, spent_ns, units, units_each=1):
    base = took["without"]

    def ratios(clock):
        return {how: interval([getattr(a, clock) / getattr(b, clock) for a, b in zip(times, base, strict=True)])
                for how, times in took.items() if how != "without"}

    return {"what": what, "units": units,
            "median_ms": {clock: statistics.median(getattr(t, clock) for t in base) / 1e6 / units_each
                          for clock in ("wall", "cpu")},
            "ratios": {"wall": ratios("wall"), "cpu": ratios("cpu")},
            "hooks": {name: {"calls": calls / units, "us": ns / 1e3 / units} for name, (calls, ns) in ours.items()},
            "hooks_share": sum(ns for _, ns in ours.values()) / spent_ns, "bus_share": bus_ns / spent_ns}


def train(rank, folder, steps, out):
    """One rank of two: a compiled model under DistributedDataParallel, gloo, CPU."""
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    meter = Meter()
    meter.install()
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    layers = [layer for _ in range(6) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(64, 512)

    def step(bus, n):
        with bus.step(n):
            optimizer.zero_grad()
            compiled(data).square().mean().backward()
            optimizer.step()

    def block(bus):
        step(bus, 0)  # not counted: what came before still ends in it
        torch.distributed.barrier()
        with Times() as times:
            for n in range(STEPS_PER_BLOCK):
                step(bus, n)
        return times

    before = tasks()
    with ringmain.Bus() as quiet, ringmain.Bus() as bus:
        heard = listen(bus)
        with bus.step(0):
            pass
        bus.flush(10)
        own = tasks() - before  # PyTorch's own threads begin with the first step
        for _ in range(3):
            block(quiet)
        took, ours, bus_ns, spent = {"without": [], "heard": []}, {}, 0, 0
        for n in range(steps // STEPS_PER_BLOCK):
            for how in ("without", "heard") if n % 2 else ("heard", "without"):  # the same in both ranks
                if how == "without":
                    took[how].append(block(quiet))
                    continue
                with ringmain.torch.attach(bus):
                    took[how].append(block(bus))
            with ringmain.torch.attach(bus) as attachment:
                meter.meter_guards(attachment)  # apart: the meter costs more than what it measures
                bus.flush(10)
                meter.take()
                threads_ns = bus_threads_ns(own)
                spent += block(bus).cpu
                bus.flush(10)
                bus_ns += bus_threads_ns(own) - threads_ns
                add(ours, meter.take())
                meter.restore_guards(attachment)
    torch.distributed.destroy_process_group()
    if rank == 0:
        result = report("step of two ranks, gloo", took, ours, bus_ns, spent, steps, STEPS_PER_BLOCK)
        result["heard"] = heard
        Path(out).write_text(json.dumps(result), encoding="utf-8")


def bench_steps(steps):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "steps.json"
        torch.multiprocessing.spawn(train, args=(folder, steps, str(out)), nprocs=2)
        return json.loads(out.read_text(encoding="utf-8"))


def show(result):
    wall, cpu = result["median_ms"]["wall"], result["median_ms"]["cpu"]
    print(f"\n{result['what']}: {wall:.1f} ms, {cpu:.1f} ms of CPU time, without us")
    for clock, ratios in result["ratios"].items():
        for how, ratio in ratios.items():
            print(f"  A/B {how:<8} {clock:<5} x {ratio['median']:.4f}  ({ratio['low']:.4f} to {ratio['high']:.4f}, "
                  f"{ratio['pairs']} pairs)")
    for name, figures in sorted(result["hooks"].items(), key=lambda item: -item[1]["us"]):
        print(f"  ours {name:<20} {figures['us']:9.1f} us in {figures['calls']:.1f} calls")
    print(f"  ours in hooks: {100 * result['hooks_share']:.3f} % of the CPU time; in the bus's threads: "
          f"{100 * result['bus_share']:.3f} %", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=20, help="compiles of each kind with aot_eager; half with inductor")
    options.add_argument("--steps", type=int, default=400, help="steps of each kind")
    options.add_argument("--json", help="write the figures there")
    chosen = options.parse_args()
    if chosen.rounds < 5 or chosen.steps < STEPS_PER_BLOCK:
        options.error(f"at least 5 rounds and {STEPS_PER_BLOCK} steps")
    print(f"the meter adds {meter_us():.2f} us to each call of a hook")
    results = [bench_steps(chosen.steps)]
    show(results[-1])
    meter = Meter()
    meter.install()
    torch.set_num_threads(1)
    results.append(bench_compiles("aot_eager", chosen.rounds, meter))
    show(results[-1])
    with torch._inductor.config.patch(force_disable_caches=True):
        results.append(bench_compiles("inductor", chosen.rounds // 2, meter))
    show(results[-1])
    if chosen.json:
        Path(chosen.json).write_text(json.dumps({"torch": torch.__version__, "meter_us": meter_us(), "results": results}, indent=1) + "\n",
                                     encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
