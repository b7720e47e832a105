#!/usr/bin/env python3
"""Do the scripts of PyTorch, of NVIDIA's libraries and of the sanitizer run to their ends, where there is no GPU?

usage: scripts_test.py TESTCASE. Those of PyTorch run with the real one, of which only what needs a GPU is replaced: tensors are
the CPU's, and events and streams tell PyTorch's own trace what those of a GPU would.
"""

import contextlib
import io
import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE / "scripts"
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import tests_of_company
from cases import main

try:
    import torch
    from torch.cuda import _gpu_trace as trace
except ImportError:
    torch = None


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


class Stream:
    def __init__(self, address=0x51):
        self.cuda_stream = address
        trace.StreamCreationCallbacks.fire_callbacks(address)

    def synchronize(self):
        trace.StreamSynchronizationCallbacks.fire_callbacks(self.cuda_stream)


class Event:
    def record(self):
        trace.EventCreationCallbacks.fire_callbacks(0xE1)
        trace.EventRecordCallbacks.fire_callbacks(0xE1, 0)

    def wait(self, stream):
        trace.EventWaitCallbacks.fire_callbacks(0xE1, stream.cuda_stream)

    def synchronize(self):
        trace.EventSynchronizationCallbacks.fire_callbacks(0xE1)

    def __del__(self):
        trace.EventDeletionCallbacks.fire_callbacks(0xE1)


def on_the_cpu(make):
    def made(*shape, device="cpu"):
        trace.MemoryAllocationCallbacks.fire_callbacks(0xA1)
        return make(*shape)

    return made


class TorchTest(InAFolder):
    def setUp(self):
        super().setUp()
        if torch is None:
            self.skipTest("there is no PyTorch")
        lists = [getattr(trace, name) for name in dir(trace) if name.endswith("Callbacks")]
        self.addCleanup(lambda: [one.callback_list.clear() for one in lists])
        for name, instead in (("init", lambda: None), ("Stream", Stream), ("Event", Event), ("stream", contextlib.nullcontext),
                              ("synchronize", lambda: trace.DeviceSynchronizationCallbacks.fire_callbacks())):
            self.replace(torch.cuda, name, instead)
        for name in ("ones", "zeros"):
            self.replace(torch, name, on_the_cpu(getattr(torch, name)))
        self.replace(torch._C, "_activate_gpu_trace", lambda: None)  # it would tell calls of the GPU's

    def replace(self, where, name, instead):
        replaced = mock.patch.object(where, name, instead)
        replaced.start()
        self.addCleanup(replaced.stop)

    def run_script(self, name, *words):
        printed = io.StringIO()
        with mock.patch.object(sys, "argv", [name, *words]), contextlib.redirect_stdout(printed):
            runpy.run_path(str(SCRIPTS / name), run_name="__main__")
        return printed.getvalue()

    def test_the_loader_reads_all(self):
        self.assertEqual(self.run_script("torch_loader.py"), "PyTorch's loader read 100 with two workers\n")

    def test_the_profiler_answers(self):
        self.assertEqual(json.loads(self.run_script("torch_profiled.py").splitlines()[-1]), {"gpu_events": 0})

    def test_what_the_trace_says_is_written_and_found_in_what_is_heard(self):
        written = self.folder / "trace.jsonl"
        self.run_script("torch_calls.py", str(written))
        told = [json.loads(line) for line in written.read_text().splitlines()]
        self.assertEqual({one["kind"] for one in told}, tests_of_company.OF_TORCH.keys() - {"memory_deallocation"})
        for one in told:
            self.assertEqual(len(one["given"]), len(tests_of_company.OF_TORCH[one["kind"]]), one)
        heard = [{"channel": f"cuda.{one['kind']}", "phase": "instant", "time_ns": at, "thread": one["thread"],
                  **dict(zip(tests_of_company.OF_TORCH[one["kind"]], one["given"]))} for at, one in enumerate(told)]
        self.assertIn(f"{len(told)} events of PyTorch's are ours", self.g10(told, heard))
        with self.assertRaises(tests_of_company.Failed):
            self.g10(told, heard[:-1])
        heard[3], heard[4] = {**heard[4], "time_ns": 3}, {**heard[3], "time_ns": 4}
        with self.assertRaises(tests_of_company.Failed):
            self.g10(told, heard)

    def g10(self, told, heard):
        place = mock.Mock(folder=self.folder)
        (self.folder / "torch.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
        place.torch.return_value = heard, None
        return tests_of_company.g10(place)


class LibrariesTest(InAFolder):
    STAND_IN = """
int cublasCreate_v2(void **handle) { *handle = (void *)1; return 0; }
int cublasDestroy_v2(void *handle) { return handle != (void *)1; }
int cudnnCreate(void **handle) { (void)handle; return 1; }
int ncclCommInitAll(void **comms, int count, const int *devices) { comms[0] = (void *)1; return count != 1 || devices[0] != 0; }
int ncclCommDestroy(void *comm) { return comm != (void *)1; }
"""

    def run_script(self):
        return subprocess.run([sys.executable, "-I", str(SCRIPTS / "libraries.py")], capture_output=True, text=True, check=False,
                              env={"LD_LIBRARY_PATH": str(self.folder)})

    def test_each_that_is_there_is_tried(self):
        if (compiler := shutil.which("cc")) is None:
            self.skipTest("there is no C compiler")
        for name in ("libcublas", "libcudnn", "libnccl"):
            subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", self.folder / f"{name}.so.9"], input=self.STAND_IN, text=True, check=True)
        run = self.run_script()
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "libcublas: 0, libcudnn: 1, libnccl: 0\n", ""))

    def test_what_is_no_library_ends_nothing(self):
        for name in ("libcublas", "libcudnn", "libnccl"):
            (self.folder / f"{name}.so.9").write_text("no library\n")
        run = self.run_script()
        self.assertIn(run.returncode, (0, 77), run.stderr)


class SanitizerTest(InAFolder):
    """compute-sanitizer in two ways: it lets the driver load us, and it does not."""

    def meeting(self, *lines):
        build, tool = Path(os.environ["GPU_BUILD"]), self.folder / "compute-sanitizer"
        if not (build / "bin/gpu-fakes/runtime_calls").exists():
            self.skipTest("CUDA's headers are not here, so the programs were not built")
        tool.write_text("\n".join(["#!/bin/sh", *lines, 'exec "$@"\n']))
        tool.chmod(0o755)
        run = subprocess.run(["bash", str(HERE / "run_all.sh"), "--build", str(build), "--no-build", "--fakes", "--only", "G11", "--output",
                              str(self.folder / "results")], capture_output=True, text=True, check=False,
                             env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return next(line for line in run.stdout.splitlines() if "under compute-sanitizer" in line)

    def test_what_the_source_said_is_reported(self):
        self.assertIn("ended with 0; the source: attached", self.meeting())

    def test_that_it_was_not_let_in_is_reported(self):
        self.assertIn("ended with 0; the source: was not let in", self.meeting("unset CUDA_INJECTION64_PATH"))


if __name__ == "__main__":
    sys.exit(main())
