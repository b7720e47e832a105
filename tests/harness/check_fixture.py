"""How is it shown that a check can fail? By running it on a small tree made for it."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"


class CheckTest(unittest.TestCase):
    """Gives each test an empty tree, and runs checks on it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringmain-check-")
        self.addCleanup(folder.cleanup)
        self.tree = Path(folder.name)

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def run_check(self, check, *arguments):
        return subprocess.run([sys.executable, str(TOOLS / check), *(arguments or [str(self.tree)])],
                              capture_output=True, text=True, check=False)

    def assert_passes(self, check, *arguments):
        run = self.run_check(check, *arguments)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def assert_fails(self, check, words, *arguments):
        run = self.run_check(check, *arguments)
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertIn(words, run.stdout)
