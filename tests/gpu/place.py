"""Where does a test find its programs, and how does it run them, with ringmain listening and without?"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import heard
import machine

SCRIPTS = Path(__file__).resolve().parent / "scripts"
SKIPPED = 77  # the status of a script that says what it misses


class Skipped(Exception):
    """What a test needs is not here."""


class Failed(Exception):
    """What must hold does not."""


class Place:
    def __init__(self, build, output, fakes, python=sys.executable):
        self.build, self.output, self.fakes, self.python = build, output, fakes, python
        self.programs = build / "bin" / ("gpu-fakes" if fakes else "gpu")
        self.ringmain = build / "bin" / "ringmain"
        self.recorder = build / "bin" / "gpu" / "gpu_recorder.so"
        self._kept = tempfile.TemporaryDirectory(prefix="ringmain-gpu-")
        self.folder = Path(self._kept.name)
        self.figures, self.answers = {}, []

    def close(self):
        self._kept.cleanup()

    def variables(self, **more):
        """The process's own, with CUDA's libraries, or those that stand in for them, where the loader finds them."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("CUDA_INJECTION", "FAKE_", "GPU_"))}
        folders = [str(self.build / "tests/adapters/cuda/fakes/lib")] if self.fakes else machine.library_folders()
        path = ":".join([*folders, *filter(None, [kept.get("LD_LIBRARY_PATH")])])
        return {**kept, "LD_LIBRARY_PATH": path, **more}

    def driver_folder(self):
        """A folder with nothing but the driver's library, for programs that would find another before."""
        asked = "import ctypes; ctypes.CDLL('libcuda.so.1'); print([l.split()[-1] for l in open('/proc/self/maps') if 'libcuda.so' in l][0])"
        run = subprocess.run([sys.executable, "-c", asked], env=self.variables(), capture_output=True, text=True, check=False)
        folder = self.folder / "driver"
        folder.mkdir()
        (folder / "libcuda.so.1").symlink_to(run.stdout.strip() or "/nowhere")
        return folder

    def program(self, name):
        path = self.programs / name
        if not path.exists():
            raise Skipped(f"{name} was not built: that needs CUDA's toolkit" if not self.fakes else f"{name} is of no use over stand-ins")
        return str(path)

    def run(self, *command, status=0, **variables):
        """Its standard output. Any other end than `status` is a failure; None: any end that is no signal."""
        run = subprocess.run(command, capture_output=True, text=True, check=False, env=self.variables(**variables))
        if run.returncode < 0 or (status is not None and run.returncode != status):
            raise Failed(f"{Path(command[0]).name} {Path(command[-1]).name} ended with {run.returncode}: {(run.stderr or run.stdout).strip()[-300:]}")
        return run

    def heard(self, *command, source="cuda:lossless", status=0, may_be_silent=False, **variables):
        """(what the program wrote down, what ringmain heard, the run). The bus is not to lose anything here."""
        if not self.ringmain.exists():
            raise Skipped("the ringmain program was not built")
        number = len(list(self.folder.iterdir()))
        ledger, lines = self.folder / f"{number}.ledger", self.folder / f"{number}.jsonl"
        run = self.run(str(self.ringmain), "run", "--source", source, "--sink", f"json_lines:{lines}", "--", *command,
                       status=status, GPU_LEDGER=str(ledger), **variables)
        events = heard.read_lines(lines)
        if not may_be_silent and not self.notices(events):
            raise Failed(f"the source said nothing of itself: {run.stderr.strip()[-300:]}")
        return heard.read_lines(ledger), events, run

    def notices(self, events):
        """In order of time: lines of several threads are in none."""
        return sorted((one for one in events if one["channel"] == "cuda.source"), key=lambda one: one["time_ns"])

    def must_be_attached(self, events):
        states = [one["state"] for one in self.notices(events)]
        if "attached" not in states:
            raise Failed(f"the source did not attach: {[(one['state'], one['owner'], one['reason']) for one in self.notices(events)]}")

    def compared(self, *command, **options):
        """Runs it with ringmain listening; how many events there were, each as the program knows it."""
        ledger, events, _ = self.heard(*command, **options)
        self.must_be_attached(events)
        try:
            return heard.compare(ledger, events), events
        except heard.Different as what:
            raise Failed(str(what)) from None

    def torch(self, script, *words, status=0, source=None, **variables):
        """A Python program with PyTorch, below ringmain if a source is named."""
        if self.fakes:
            raise Skipped("PyTorch knows no libraries that stand in for CUDA's")
        asked = subprocess.run([self.python, "-c", "import torch; print(torch.cuda.is_available())"], capture_output=True, text=True,
                               check=False, env=self.variables())
        if asked.stdout.strip() != "True":
            raise Skipped("there is no PyTorch that can use the GPU: " + (asked.stderr.strip().splitlines() or ["torch.cuda is not available"])[-1])
        command = [self.python, str(SCRIPTS / script), *words]
        if source is None:
            return None, self.run(*command, status=status, **variables)
        _, events, run = self.heard(*command, source=source, status=status, **variables)
        return events, run

    def with_package(self, script, *words):
        """A Python program with PyTorch's process groups and ringmain's package: over NCCL, or over gloo with stand-ins. PyTorch
        finds CUDA's libraries by itself; those of a toolkit may be others."""
        path = ":".join(filter(None, [str(self.package()), os.environ.get("PYTHONPATH")]))  # PyTorch may lie in the caller's
        own = {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""), "PYTHONPATH": path}
        run = self.run(self.python, str(SCRIPTS / script), *words, status=None, PYTHONDONTWRITEBYTECODE="1", **own)
        if run.returncode == SKIPPED:
            raise Skipped(run.stderr.strip().splitlines()[-1])
        if run.returncode != 0:
            raise Failed(f"{script} ended with {run.returncode}: {run.stderr.strip()[-300:]}")

    def package(self):
        """Where ringmain's Python package lies: of this build, or of one beside it (run_all.sh)."""
        why = self.build / "package.txt"
        text = why.read_text().strip() if why.exists() else ""
        if text.startswith("FAILED: "):
            raise Failed(text.removeprefix("FAILED: "))
        found = [folder for folder in (self.build / "package/python", self.build / "python") if (folder / "ringmain/__init__.py").exists()]
        if text or not found:
            raise Skipped(text or f"ringmain's Python package was not built below {self.build}")
        return found[0]

    def answer_of(self, run):
        """The last line of a program that answers in JSON."""
        return json.loads(run.stdout.strip().splitlines()[-1])
