#!/usr/bin/env python3
"""Where do the traces under examples/traces come from? From this program.

It trains a small language model on additions ("37+45=082") with DistributedDataParallel, one
process per rank, under torch.profiler, and leaves one Kineto trace (Chrome JSON, gzip) per rank:

    python3 examples/traces/record_training.py --steps 6 --out traces            # gloo, on the CPU
    python3 examples/traces/record_training.py --device cuda --world-size 4      # NCCL, one GPU per rank

Beside the all-reduces of DistributedDataParallel, each step has the collectives that a larger
training has, each for a reason: see `train_step`. Steps are marked by ProfilerStep#N and their
parts by record_function annotations.

A trace carries the name of the machine and paths of its file system. trace_residue.py says what is
taken out before a trace is written; everything else is the profiler's own text, unchanged.

Needs PyTorch (written for 2.13; --device cuda needs its CUDA build and NCCL) and nothing else.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import gzip
import json
import logging
import math
import os
import pathlib
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as multiprocessing
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, record_function, schedule
except ImportError as missing:
    sys.exit(f"record_training: {missing}; install PyTorch: python3 -m pip install torch")

from trace_residue import without_residue

SYMBOLS = "0123456789+="
SENTENCE = len("37+45=082")
SHARE = 16  # examples of its batch that a rank gives to each rank, itself included
UNRECORDED_STEPS = 2  # DistributedDataParallel builds its final buckets after the first step


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the command line asks for, and where the ranks meet."""

    steps: int
    world_size: int
    device: str
    seed: int
    workers: int
    shapes: bool
    port: int
    raw: pathlib.Path

    @property
    def backend(self) -> str:
        return "nccl" if self.device == "cuda" else "gloo"

    def raw_trace(self, rank: int) -> pathlib.Path:
        return self.raw / f"rank{rank}.json"

    def last_words(self, rank: int) -> pathlib.Path:
        return self.raw / f"rank{rank}.error"


class Additions(torch.utils.data.Dataset):
    """All sums of two two-digit numbers, as sequences of symbols."""

    def __len__(self) -> int:
        return 100 * 100

    def __getitem__(self, index: int) -> torch.Tensor:
        a, b = divmod(index, 100)
        return torch.tensor([SYMBOLS.index(symbol) for symbol in f"{a:02}+{b:02}={a + b:03}"])


def end_with_the_rank(_: int) -> None:
    """Lets a DataLoader process end when its rank is gone.

    PyTorch's own watch compares parent ids: it misses a rank that dies while the process starts.
    """
    rank = multiprocessing.parent_process()

    def watch() -> None:
        if rank is not None:  # None only in the main process
            rank.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Block(nn.Module):
    """One transformer layer: causal attention, then a feed-forward part."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        query, key, value = (
            part.view(shape).transpose(1, 2)
            for part in self.query_key_value(self.attention_norm(x)).chunk(3, dim=-1)
        )
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attention_out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed_forward(x)


class AdditionModel(nn.Module):
    """A two-layer transformer that predicts the next symbol."""

    def __init__(self, width: int = 128, heads: int = 4) -> None:
        super().__init__()
        self.symbols = nn.Embedding(len(SYMBOLS), width)
        self.places = nn.Embedding(SENTENCE, width)
        self.blocks = nn.Sequential(Block(width, heads), Block(width, heads))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, len(SYMBOLS)))

    def forward(self, sentence: torch.Tensor) -> torch.Tensor:
        places = torch.arange(sentence.shape[1], device=sentence.device)
        return self.head(self.blocks(self.symbols(sentence) + self.places(places)))


def exchanged(batch: torch.Tensor) -> torch.Tensor:
    """The batch after every rank gave every other rank an equal share of its own."""
    received = torch.empty_like(batch)
    dist.all_to_all_single(received, batch)
    return received


def loss_by_symbol(losses: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """This rank's share of a table of summed losses, one entry per symbol, over all ranks."""
    entries = math.ceil(len(SYMBOLS) / dist.get_world_size()) * dist.get_world_size()
    mine = torch.zeros(entries, device=losses.device).index_add_(0, targets, losses)
    share = torch.empty(entries // dist.get_world_size(), device=losses.device)
    # 2.13 deprecates reduce_scatter_tensor; earlier releases know no other name.
    name = "reduce_scatter_single"
    getattr(dist, name if hasattr(dist, name) else "reduce_scatter_tensor")(share, mine)
    return share


def told_to_the_next_rank(message: torch.Tensor) -> torch.Tensor:
    """What the rank before this one, in a ring, said."""
    heard, ranks, rank = torch.empty_like(message), dist.get_world_size(), dist.get_rank()
    if ranks == 1:
        return message.clone()
    operations = [
        dist.P2POp(dist.isend, message, (rank + 1) % ranks),
        dist.P2POp(dist.irecv, heard, (rank - 1) % ranks),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    return heard


def train_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor, step: int
) -> float:
    """One step, with every kind of collective; returns the loss over all ranks."""
    device = batch.device
    with record_function("learning_rate"):  # rank 0 decides: broadcast
        rate = torch.tensor([3e-3 * min(1.0, (step + 1) / 4)], device=device)
        dist.broadcast(rate, src=0)
        optimizer.param_groups[0]["lr"] = rate.item()
    with record_function("shuffle_across_ranks"):  # all-to-all
        batch = exchanged(batch)
    inputs, targets = batch[:, :-1], batch[:, 1:].reshape(-1)
    with record_function("forward"):
        logits = model(inputs).reshape(-1, len(SYMBOLS))
        losses = nn.functional.cross_entropy(logits, targets, reduction="none")
        loss = losses.mean()
    with record_function("backward"):  # one all-reduce per bucket, started while others compute
        loss.backward()
    with record_function("optimizer"):
        optimizer.step()
        optimizer.zero_grad()
    with record_function("metrics"):  # reduce-scatter, all-gather, send and receive
        loss_by_symbol(losses.detach(), targets)
        everyone = [torch.empty(1, device=device) for _ in range(dist.get_world_size())]
        dist.all_gather(everyone, loss.detach().reshape(1))
        told_to_the_next_rank(loss.detach().reshape(1))
    with record_function("end_of_step"):
        dist.barrier(device_ids=[device.index] if device.type == "cuda" else None)
    return float(torch.stack(everyone).mean())


def train(rank: int, settings: Settings) -> None:
    """What one rank does between joining and leaving the process group."""
    torch.manual_seed(settings.seed)
    torch.set_num_threads(1)  # ranks share the machine
    device = torch.device("cpu")
    if settings.device == "cuda":
        device = torch.device("cuda", rank)
        torch.cuda.set_device(device)
    model = nn.parallel.DistributedDataParallel(
        AdditionModel().to(device),
        device_ids=[rank] if device.type == "cuda" else None,
        bucket_cap_mb=0.5,  # several buckets per step, as in a model of a real size
    )
    optimizer = torch.optim.AdamW(model.parameters())
    examples = Additions()
    batches = iter(torch.utils.data.DataLoader(
        examples, SHARE * settings.world_size, drop_last=True,
        sampler=torch.utils.data.DistributedSampler(examples, seed=settings.seed),
        num_workers=settings.workers, worker_init_fn=end_with_the_rank,
    ))
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    window = schedule(wait=UNRECORDED_STEPS - 1, warmup=1, active=settings.steps, repeat=1)
    losses: list[float] = []
    with profile(
        activities=activities,
        schedule=window,
        record_shapes=settings.shapes,
        on_trace_ready=lambda done: done.export_chrome_trace(str(settings.raw_trace(rank))),
    ) as profiler:
        for step in range(UNRECORDED_STEPS + settings.steps):
            losses.append(train_step(model, optimizer, next(batches).to(device), step))
            profiler.step()
    if rank == 0:
        print(f"loss {losses[0]:.3f} in the first step, {losses[-1]:.3f} in step {len(losses)}")


def run_rank(rank: int, settings: Settings) -> None:
    """The whole life of one rank's process; notes an error before its neighbours feel it."""
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)
    os.environ.setdefault("NCCL_SOCKET_IFNAME", loopback)
    try:
        store = dist.TCPStore("127.0.0.1", settings.port, is_master=False)
        dist.init_process_group(
            settings.backend,
            store=store,
            rank=rank,
            world_size=settings.world_size,
            timeout=datetime.timedelta(seconds=120),
        )
        train(rank, settings)
        dist.destroy_process_group()
    except Exception as error:
        first_line = (str(error).strip() or "no message").splitlines()[0]
        words = f"{type(error).__name__}: {first_line}"
        settings.last_words(rank).write_text(f"{time.monotonic_ns()} {words}")
        os._exit(1)  # an orderly exit would first wait for DataLoader processes and gloo's threads


def first_death(settings: Settings, exit_codes: list[int | None]) -> str:
    """Which rank died first, and of what: its neighbours' broken connections are not the cause."""
    for rank, code in enumerate(exit_codes):
        if code is not None and code < 0 and -code != signal.SIGTERM:  # SIGTERM is our own clean-up
            return f"rank {rank} was killed by {signal.Signals(-code).name}"
    said = []
    for rank in range(len(exit_codes)):
        if settings.last_words(rank).exists():
            when, words = settings.last_words(rank).read_text().split(" ", 1)
            said.append((int(when), f"rank {rank} died of {words}"))
    return min(said)[1] if said else f"the ranks ended with exit codes {exit_codes}"


def record(settings: Settings) -> None:
    """Runs all ranks to their end; leaves the raw traces in settings.raw."""
    context = multiprocessing.spawn(
        run_rank, args=(settings,), nprocs=settings.world_size, join=False
    )
    try:
        while not context.join():
            pass
    except (multiprocessing.ProcessRaisedException, multiprocessing.ProcessExitedException):
        reason = first_death(settings, [process.exitcode for process in context.processes])
        sys.exit(f"record_training: {reason}; no trace was written")
    except KeyboardInterrupt:
        sys.exit("record_training: interrupted; no trace was written")
    finally:
        for process in context.processes:
            process.kill()  # does nothing to a rank that has ended


def write_trace(raw: pathlib.Path, finished: pathlib.Path, backend: str) -> None:
    """Cleans one trace, checks that it holds what it is for, and writes it in one piece."""
    text = without_residue(raw.read_text(encoding="utf-8"), finished.name.removesuffix(".gz"))
    records = json.loads(text)["traceEvents"]
    annotated = sum(str(record.get("name")).startswith(f"{backend}:") for record in records)
    if annotated == 0:
        sys.exit(f"record_training: {finished.name} would hold no collective: this PyTorch does "
                 f"not annotate {backend}; 2.13 does")
    if backend == "nccl" and not any(record.get("cat") == "kernel" for record in records):
        sys.exit(f"record_training: {finished.name} would hold no GPU kernel: the profiler could "
                 "not use CUPTI; see its messages above")
    unfinished = finished.with_suffix(".partial")
    with open(unfinished, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(text.encode("utf-8"))
    unfinished.replace(finished)
    print(f"{finished}: {len(records)} records, {annotated} annotated collectives, "
          f"{finished.stat().st_size} bytes")


def why_not(backend: str, ranks: int) -> str | None:
    """One sentence on why this PyTorch or this machine cannot record, or None."""
    if not dist.is_available():
        return "this PyTorch has no torch.distributed; install an official build"
    if backend == "gloo":
        there = dist.is_gloo_available()
        return None if there else "this PyTorch has no gloo; install an official build"
    if not torch.cuda.is_available():
        return "CUDA is not available: it needs a GPU, its driver and a CUDA build of PyTorch"
    if not dist.is_nccl_available():
        return "this PyTorch has no NCCL; install an official CUDA build for Linux"
    if torch.cuda.device_count() < ranks:
        gpus = torch.cuda.device_count()
        return f"{ranks} ranks need {ranks} GPUs, this machine has {gpus}; lower --world-size"
    return None


def parsed_arguments() -> argparse.Namespace:
    def at_least(low: int) -> Callable[[str], int]:
        def number(text: str) -> int:
            if int(text) < low:
                raise argparse.ArgumentTypeError(f"{text} is below {low}")
            return int(text)

        return number

    parser = argparse.ArgumentParser(
        description="Record a small DistributedDataParallel training as one Kineto trace per rank.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--steps", type=at_least(1), default=6, help="recorded training steps")
    parser.add_argument("--out", type=pathlib.Path, default="traces", help="folder for the traces")
    parser.add_argument("--world-size", type=at_least(1), default=2, help="number of ranks")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu",
                        help="cpu records gloo, cuda records NCCL with one GPU per rank")
    parser.add_argument("--seed", type=int, default=1, help="seed of weights and order of examples")
    parser.add_argument("--workers", type=at_least(0), default=1,
                        help="DataLoader processes per rank")
    parser.add_argument("--shapes", action="store_true",
                        help="record tensor shapes too: the sizes of gloo's collectives")
    arguments = parser.parse_args()
    per_step = arguments.world_size * arguments.world_size * SHARE
    available = max(0, len(Additions()) // per_step - UNRECORDED_STEPS)
    if arguments.steps > available:
        parser.error(f"--steps {arguments.steps}: with {arguments.world_size} ranks the examples "
                     f"last for {available} steps; lower --steps or --world-size")
    return arguments


def main() -> None:
    arguments = parsed_arguments()
    backend = "nccl" if arguments.device == "cuda" else "gloo"
    if (reason := why_not(backend, arguments.world_size)) is not None:
        sys.exit(f"record_training: {reason}")
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"record_training: cannot make {arguments.out}: {error.strerror}; "
                 "choose another --out")
    os.environ.setdefault("KINETO_LOG_LEVEL", "4")  # errors, and its start and stop
    # A rank that dies leaves its semaphores to Python's resource tracker, which would say so.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")
    logging.getLogger("torch.multiprocessing.spawn").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as raw, socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        # The store takes the socket over; the ranks meet there, so it outlives them.
        meeting_point = dist.TCPStore(
            "127.0.0.1", port, is_master=True, wait_for_workers=False,
            master_listen_fd=listener.detach(),
        )
        settings = Settings(arguments.steps, arguments.world_size, arguments.device, arguments.seed,
                            arguments.workers, arguments.shapes, port, pathlib.Path(raw))
        record(settings)
        del meeting_point
        for rank in range(settings.world_size):
            finished = arguments.out / f"ddp_{backend}_rank{rank}.json.gz"
            write_trace(settings.raw_trace(rank), finished, backend)


if __name__ == "__main__":
    main()
