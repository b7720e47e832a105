#!/usr/bin/env python3
"""Where do the flight recorder's files lie, what is there after which end of a command, and what is said where nothing was recorded?

usage: flight_run_test.py TESTCASE, with the program in $RINGMAIN_BINARY
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from cases import main

BINARY = os.environ["RINGMAIN_BINARY"]


class FlightRunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


class PlaceTest(FlightRunTest):
    def doctor(self, **variables):
        """What it says of the flight recorder's files, and how to mend it."""
        without = {name: value for name, value in os.environ.items() if name not in ("RINGMAIN_FLIGHT_DIR", "XDG_RUNTIME_DIR")}
        said = json.loads(subprocess.run([BINARY, "doctor", "--json"], capture_output=True, text=True, check=False,
                                           env={**without, **variables}).stdout)
        finding = next(finding for finding in said["findings"] if finding["name"] == "flight recorder")
        return finding["found"], finding.get("mend", "")

    def test_who_empties_the_flight_recorders_folder_is_said_however_it_is_named(self):
        stays = "set RINGMAIN_FLIGHT_DIR to a folder that stays"
        with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
            link = self.folder / "link"
            link.symlink_to(memory)
            for folder in (f"{memory}/flight", f"{link}/flight"):
                found, mend = self.doctor(RINGMAIN_FLIGHT_DIR=folder)
                self.assertIn(f"files go to {folder}; until the machine restarts, unless a job's epilog", found)
                self.assertIn(stays, mend)
        runtime = self.folder / "runtime"
        runtime.mkdir(mode=0o700)
        found, mend = self.doctor(XDG_RUNTIME_DIR=str(runtime))
        self.assertIn(f"files go to {runtime}/ringmain-flight; until you log out", found)
        self.assertIn(stays, mend)
        kind = subprocess.run(["stat", "-f", "-c", "%T", self.folder], capture_output=True, text=True, check=True).stdout.strip()
        if kind in ("tmpfs", "ramfs"):
            self.skipTest(f"{self.folder} is in memory")
        found, mend = self.doctor(RINGMAIN_FLIGHT_DIR=str(self.folder / "disk"))
        self.assertIn(f"files go to {self.folder / 'disk'}; room for", found)
        self.assertEqual(mend, "")


if __name__ == "__main__":
    sys.exit(main())
