#!/usr/bin/env python3
"""Is NCCL fetched once, as pinned, and missed with a sentence?

The script runs with a pip of its own, which writes down how it was called and makes the wheel that is asked for.
"""

import os
import platform
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIP = """
import os, sys, zipfile
from pathlib import Path
state = Path(os.environ["STATE"])
given = dict(zip(sys.argv[1:], sys.argv[2:]))
(line,) = Path(given["--requirement"]).read_text().splitlines()
with (state / "calls").open("a") as calls:
    calls.write(line + "\\n")
if "--require-hashes" not in sys.argv or "--no-deps" not in sys.argv:
    sys.exit("it must ask for checksums, and for nothing else")
if (state / "fails").exists():
    sys.exit("WARNING: slow\\nERROR: no route to host\\n  more")
with zipfile.ZipFile(Path(given["--dest"]) / "nvidia_nccl.whl", "w") as wheel:
    for name in ("include/nccl.h", "include/nccl_device.h", "lib/libnccl_device.bc", "lib/libnccl.so.2")[:3 if (state / "empty").exists() else 4]:
        wheel.writestr("nvidia/nccl/" + name, line)
    wheel.writestr("nvidia/nccl/../../escaped.h", line)
"""
LIST = """# folder package version digest
2.32.3 nvidia-nccl-cu13 2.32.3 aaaa
2.30.7 nvidia-nccl-cu13 2.30.7 bbbb
"""


@unittest.skipUnless(platform.machine() == "x86_64", "the list has wheels for x86_64")
class NcclWheelsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringmain-nccl-wheels-")
        self.addCleanup(folder.cleanup)
        self.state = Path(folder.name)
        (self.state / "pip").mkdir()
        (self.state / "pip" / "__init__.py").touch()
        (self.state / "pip" / "__main__.py").write_text(PIP)
        (self.state / "list.txt").write_text(LIST)
        self.folder = self.state / "build" / "nccl"

    def fetch(self, *version, status=0):
        run = subprocess.run([sys.executable, ROOT / "tools" / "nccl_wheels.py", self.state / "list.txt", self.folder, *version],
                             env={**os.environ, "STATE": str(self.state), "PYTHONPATH": str(self.state), "PYTHONDONTWRITEBYTECODE": "1"},
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, status, run.stderr)
        return (run.stdout + run.stderr).splitlines()

    def calls(self):
        return (self.state / "calls").read_text().splitlines() if (self.state / "calls").exists() else []

    def there(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())

    def test_the_first_of_the_list_is_unpacked_once(self):
        self.assertEqual(self.fetch(), [f"dev: fetching NCCL 2.32.3 for the tests, 300 MB, into {self.folder}/2.32.3"])
        self.assertEqual(self.there(), ["2.32.3/include/nccl.h", "2.32.3/lib/libnccl.so.2", "2.32.3/unpacked.txt"])
        self.assertEqual(self.fetch(), [])
        self.assertEqual(self.calls(), ["nvidia-nccl-cu13==2.32.3 --hash=sha256:aaaa"])
        self.assertEqual([path.name for path in self.folder.iterdir()], ["2.32.3"])

    def test_another_version_lies_beside_it(self):
        self.fetch()
        self.fetch("2.30.7")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["2.30.7", "2.32.3"])
        self.assertEqual(self.calls()[1], "nvidia-nccl-cu13==2.30.7 --hash=sha256:bbbb")

    def test_another_checksum_fetches_again(self):
        self.fetch()
        (self.state / "list.txt").write_text(LIST.replace("aaaa", "cccc"))
        self.fetch()
        self.assertEqual(len(self.calls()), 2)

    def test_where_it_cannot_be_had_a_sentence_says_so_and_what_was_there_stays(self):
        self.fetch()
        (self.state / "fails").touch()
        (self.state / "list.txt").write_text(LIST.replace("aaaa", "cccc"))
        self.assertEqual(self.fetch()[-1],
                         "dev: NCCL 2.32.3 could not be had, and the tests that need it are skipped: ERROR: no route to host")
        self.assertIn("2.32.3/lib/libnccl.so.2", self.there())
        self.assertEqual([path.name for path in self.folder.iterdir()], ["2.32.3"])

    def test_a_wheel_without_the_library_is_none(self):
        (self.state / "empty").touch()
        self.assertIn("nvidia_nccl.whl has no libnccl.so.2", self.fetch()[-1])
        self.assertEqual(self.there(), [])

    def test_a_version_that_the_list_has_not_is_wrong(self):
        self.assertEqual(self.fetch("2.0.0", status=2),
                         [f"dev: there is no NCCL 2.0.0 in {self.state}/list.txt, which has 2.32.3, 2.30.7"])
        self.assertEqual(self.calls(), [])

    def test_the_list_of_the_tree_has_a_digest_for_each_wheel(self):
        for line in (ROOT / "tools" / "nccl_wheels.txt").read_text().splitlines():
            if not line.startswith("#"):
                self.assertRegex(line, r"^(\d+\.\d+\.\d+) +nvidia-nccl-cu\d+ +\1 +[0-9a-f]{64}$")


if __name__ == "__main__":
    unittest.main()
