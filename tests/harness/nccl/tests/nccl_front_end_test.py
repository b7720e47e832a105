#!/usr/bin/env python3
"""Does NCCL's own profiler front end call as the model of it does, and does ringmain's plugin stand it?

Needs NCCL's library (RINGMAIN_NCCL, else where CMake found it) and gdb, which reads the places of NCCL's structures from the
library's own DWARF: they are nowhere written down here. No GPU is needed.
"""

import collections
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
NCCL = Path(os.environ.get("RINGMAIN_NCCL") or os.environ.get("RINGMAIN_NCCL_FOUND") or "/nowhere")
LIBRARY = NCCL / "lib" / "libnccl.so.2"
FRONT_END = os.environ.get("RINGMAIN_NCCL_FRONT_END", "")
PLUGINS = Path(os.environ.get("RINGMAIN_NCCL_PLUGINS", "."))
RINGMAIN = os.environ.get("RINGMAIN_BINARY", "")
OURS = Path(os.environ.get("RINGMAIN_NCCL_PROFILER", "/nowhere"))
SKIPPED = 77

ALL = ("H1", "H2", "laps", "H3", "H4", "H5", "H6", "H7", "names", "abort", "masks", "processes", "transports", "full", "network", "random")
COPIES = ("copies",)  # since 2.29
OF_OLDER = ("H1", "H3", "H5", "masks", "network", "random")


def layout_of(binary, to):
    with to.open("w") as file:
        subprocess.run(["gdb", "-batch", "-nx", "-x", HERE / "nccl_layout.py", binary], stdout=file, stderr=subprocess.PIPE,
                       stdin=subprocess.DEVNULL, check=True)


def version():
    number = ctypes.c_int()
    ctypes.CDLL(str(LIBRARY)).ncclGetVersion(ctypes.byref(number))
    return number.value // 10000, number.value // 100 % 100


class FrontEnd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="ringmain-nccl-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.layout = cls.folder / "layout.txt"
        layout_of(LIBRARY, cls.layout)
        major, minor = version()
        assert major == 2 and minor >= 28, f"NCCL {major}.{minor} has no front end that is known here"
        minor = 28 if minor < 29 else 30 if minor < 31 else min(minor, 32)
        cls.release = f"2.{minor}"
        cls.native = {28: 5, 30: 6}.get(minor, 7)
        cls.copies = minor >= 29

    def play(self, scenario, *words, seed=1, prefix=(), **environment):
        ended = subprocess.run([*prefix, FRONT_END, scenario, str(seed), *map(str, words)], capture_output=True, text=True, check=False,
                               env={**os.environ, **{name: str(value) for name, value in environment.items()}}, timeout=600)
        self.assertEqual(ended.returncode, 0, f"{scenario} {words}: {ended.stdout}{ended.stderr}")
        return ended

    def real(self, scenario, plugin, **more):
        return self.play(scenario, "real", LIBRARY, self.layout, self.release, NCCL_PROFILER_PLUGIN=plugin, **more)


class ModelTest(FrontEnd):
    """The model's calls are NCCL's, line by line."""

    def both(self, scenario, abi, seed=1, **more):
        plugin = PLUGINS / f"recording_v{abi}.so"
        told = {}
        for who, words in (("real", (LIBRARY, self.layout, self.release)), ("model", (plugin, abi, self.release))):
            log = self.folder / f"{who}.log"
            log.unlink(missing_ok=True)
            self.play(scenario, who, *words, seed=seed, NCCL_PROFILER_PLUGIN=plugin, RINGMAIN_NCCL_RECORD=log, **more)
            told[who] = log.read_text().splitlines()
        for number, (real, model) in enumerate(zip(told["real"], told["model"]), 1):
            self.assertEqual(real, model, f"{scenario}, v{abi}, call {number}")
        self.assertEqual(len(told["real"]), len(told["model"]))
        self.assertGreater(len(told["real"]), 3)
        return told["real"]

    def test_each_scenario_by_the_newest_abi(self):
        for scenario in ALL + (COPIES if self.copies else ()):
            with self.subTest(scenario):
                self.both(scenario, self.native)

    def test_older_abis_are_converted_to(self):
        for abi in range(4, self.native):
            for scenario in OF_OLDER + (COPIES if self.copies else ()):
                with self.subTest(scenario, abi=abi):
                    self.both(scenario, abi)

    def test_dropped_events_and_other_seeds(self):
        for seed in (2, 3):
            with self.subTest(seed=seed):
                self.both("random", self.native, seed=seed, RINGMAIN_NCCL_NULL_EVERY=3)

    def test_a_handle_that_is_over_is_stopped_again(self):
        lines = self.both("masks", self.native)
        stops = collections.Counter(line for line in lines if line.startswith("stop "))
        self.assertGreater(max(stops.values()), 1)

    def test_a_hundred_cycles_load_and_unload(self):
        lines = self.both("again", self.native)
        self.assertGreaterEqual(lines.count("load"), 100)
        self.assertEqual(lines.count("load"), lines.count("unload"))


class LoadingTest(FrontEnd):
    def test_the_newest_abi_wins(self):
        log = self.folder / "load.log"
        self.real("H4", PLUGINS / "recording_all.so", RINGMAIN_NCCL_RECORD=log)
        self.assertIn(f"table v{self.native}", log.read_text())

    def test_a_name_is_looked_for_with_its_prefix(self):
        log = self.folder / "named.log"
        shutil.copy(PLUGINS / f"recording_v{self.native}.so", self.folder / "libnccl-profiler-recording.so")
        self.real("H4", "recording", RINGMAIN_NCCL_RECORD=log, LD_LIBRARY_PATH=self.folder)
        self.assertTrue(log.read_text().startswith("load\n"))

    def test_none_loads_nothing(self):
        log = self.folder / "none.log"
        for value in ("none", "NONE", "", "/nowhere/at-all.so"):
            self.real("H4", value, RINGMAIN_NCCL_RECORD=log)
            self.assertFalse(log.exists(), value)


def camel(name):
    """What NCCL calls what is snake_case here."""
    renamed = {"parent": "parentObj", "ce_sync": "ceCollSync", "ce_batch": "ceCollBatch", "send_buff": "sendBuff"}
    return renamed.get(name) or re.sub(r"_(\w)", lambda found: found[1].upper(), name)


class LayoutTest(FrontEnd):
    """adapters/sources/nccl's mirror of the ABI has each member where NCCL has it."""

    def lines(self, file, name):
        return {tuple(words[2].split(".")): (int(words[3]), int(words[4]))
                for words in map(str.split, file.read_text().splitlines()) if words[:2] == ["layout", name]}

    def test_descriptors_and_tables(self):
        for abi in range(4, self.native + 1):
            ours_file = self.folder / f"ours{abi}.txt"
            layout_of(PLUGINS / f"recording_v{abi}.so", ours_file)
            for theirs, ours in ((f"ncclProfilerEventDescr_v{abi}_t", f"DescriptorV{abi}"), (f"ncclProfiler_v{abi}_t", f"TableV{abi}"),
                                 (f"ncclProfilerEventStateArgs_v{abi}_t", "StateArgs")):
                with self.subTest(theirs):
                    nccl = self.lines(self.layout, theirs)
                    mirror = {tuple(map(camel, path)): place
                              for path, place in self.lines(ours_file, f"ringmain::nccl::abi::{ours}").items()}
                    self.assertGreater(len(nccl), 2)
                    self.assertEqual(mirror, nccl)


@unittest.skipUnless(OURS.exists(), "this build has no plugin")
class PluginTest(FrontEnd):
    """ringmain's plugin, loaded, called and unloaded by NCCL's own code."""

    def only(self, abi):
        """A copy of the plugin that exports the table of one ABI."""
        # Beside the original, whose RUNPATH may be relative to it.
        copy = self.folder / f"libringmain-v{abi}.so"
        image = OURS.read_bytes()
        for other in range(4, 8):
            if other != abi:
                image = image.replace(b"ncclProfiler_v%d\0" % other, b"ncclProfiler_x%d\0" % other)
        copy.write_bytes(image)
        return copy

    def heard(self, scenario, abi=None, **more):
        """Events by channel, each as a dictionary; of the plugin with one table, if one is asked for."""
        file = self.folder / "heard.jsonl"
        file.unlink(missing_ok=True)
        plugin = () if abi is None else ("env", f"NCCL_PROFILER_PLUGIN={self.only(abi)}")
        self.play(scenario, "real", LIBRARY, self.layout, self.release,
                  prefix=(RINGMAIN, "run", "--source", "nccl", "--sink", f"json_lines:{file}", "--", *plugin), **more)
        events = collections.defaultdict(list)
        for line in file.read_text().splitlines():
            event = json.loads(line)
            events[event.get("channel")].append(event)
        return events

    def test_each_abi_alone_gives_the_same_operations(self):
        seen = {}
        for abi in range(4, self.native + 1):
            events = self.heard("H1", abi)
            self.assertEqual(len(events["nccl.operation"]), 8 * 5, abi)
            self.assertEqual(len(events["nccl.group"]), 8 * 5, abi)
            self.assertEqual(len(events["nccl.api"]), 0 if abi == 4 else 2 * 8 * 5, abi)
            self.assertEqual(len(events["nccl.launch"]), 0 if abi == 4 else 8 * 5, abi)
            self.assertEqual(len(events["nccl.proxy_op"]), 2 * 8 * (1 + 2 + 8 + 24 + 64), abi)
            seen[abi] = sorted((json.dumps({name: value for name, value in event.items() if name in
                                            ("func", "sequence", "count", "dtype", "algorithm", "protocol", "rank", "nccl_channels")},
                                           sort_keys=True)) for event in events["nccl.operation"])
        for abi, operations in seen.items():
            self.assertEqual(operations, seen[self.native], abi)

    def test_a_hundred_cycles_of_load_and_unload(self):
        self.real("again", OURS)
        # What waits for the sink is memory of the process too, and is brought there before that is looked at.
        events = self.heard("again", RINGMAIN_END_S=600)
        states = collections.Counter(event["state"] for event in events["nccl.plugin"])
        self.assertGreaterEqual(states["opened"], 100)
        self.assertEqual(states["opened"], states["closed"])

    def test_a_chained_plugin_hears_what_it_hears_alone(self):
        # One of an older version gets from ringmain what NCCL would have made of it: Inspector of 2.28 to 2.30 has v5 alone.
        for abi in range(4, self.native + 1):
            for scenario in ("H4", "H1", "masks"):
                with self.subTest(scenario, abi=abi):
                    self.chained(scenario, PLUGINS / f"recording_v{abi}.so")

    def chained(self, scenario, plugin):
        alone, chained = self.folder / "alone.log", self.folder / "chained.log"
        for log in (alone, chained):
            log.unlink(missing_ok=True)
        self.real(scenario, plugin, RINGMAIN_NCCL_RECORD=alone)
        # What the user had in NCCL's one place for a plugin goes on there.
        events = self.heard(scenario, NCCL_PROFILER_PLUGIN=plugin, RINGMAIN_NCCL_RECORD=chained)
        self.assertGreater(len(events["nccl.operation"]), 5)
        wanted, told = self.told(alone, once=True), self.told(chained)
        for number, (one, other) in enumerate(zip(wanted, told), 1):
            self.assertEqual(other, one, f"call {number}")
        self.assertEqual(len(told), len(wanted))

    @staticmethod
    def told(log, once=False):
        """Its calls. `once`: without what NCCL says of a handle that it has stopped, which ringmain keeps from others."""
        lines, over = [], set()
        for line in log.read_text().splitlines():
            words = line.split()
            if once and words[0] in ("stop", "state"):
                if words[1] in over:
                    continue
                if words[0] == "stop":
                    over.add(words[1])
            lines.append(line)
        return [line for line in lines if line not in ("load", "unload")]


if __name__ == "__main__":
    if not LIBRARY.exists():
        print("skipped: NCCL's library is not here; ./dev test fetches it, and RINGMAIN_NCCL may name a folder with lib/libnccl.so.2")
        sys.exit(SKIPPED)
    if shutil.which("gdb") is None:
        print("skipped: there is no gdb, which reads where NCCL's structures have what the tests fill")
        sys.exit(SKIPPED)
    unittest.main()
