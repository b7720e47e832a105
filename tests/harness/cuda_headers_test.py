#!/usr/bin/env python3
"""Are the headers of CUDA fetched once, as pinned, and missed with a sentence?

The script runs with a pip of its own, which writes down how it was called and makes the wheels that are asked for.
"""

import os
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
lines = Path(given["--requirement"]).read_text().splitlines()
with (state / "calls").open("a") as calls:
    calls.write("".join(line + "\\n" for line in lines))
if "--require-hashes" not in sys.argv or "--no-deps" not in sys.argv:
    sys.exit("it must ask for checksums, and for nothing else")
if (state / "fails").exists():
    sys.exit("WARNING: slow\\nERROR: no route to host\\n  more")
for line in lines:
    with zipfile.ZipFile(Path(given["--dest"]) / (line.split("==")[0] + ".whl"), "w") as wheel:
        for name in ("include/cupti.h", "include/crt/host_defines.h", "include/Openacc/x.h", "lib/libcupti.so.13", "lib/libcudart.so.13",
                     "lib/libcudart_static.a", "lib/libnvperf_host.so"):
            wheel.writestr("nvidia/cu13/" + name, line)
        wheel.writestr("nvidia/../../escaped.h", line)
"""
LIST = """# folder package version digest
13.0 nvidia-cuda-cupti 13.0.85 aaaa
13.5 nvidia-cuda-cupti 13.5.25 bbbb
"""


class CudaHeadersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringmain-cuda-headers-")
        self.addCleanup(folder.cleanup)
        self.state = Path(folder.name)
        (self.state / "pip").mkdir()
        (self.state / "pip" / "__init__.py").touch()
        (self.state / "pip" / "__main__.py").write_text(PIP)
        (self.state / "list.txt").write_text(LIST)
        self.headers = self.state / "build" / "cuda-headers"

    def fetch(self):
        run = subprocess.run([sys.executable, ROOT / "tools" / "cuda_headers.py", self.state / "list.txt", self.headers],
                             env={**os.environ, "STATE": str(self.state), "PYTHONPATH": str(self.state)},
                             capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout.splitlines()

    def calls(self):
        return sorted((self.state / "calls").read_text().splitlines()) if (self.state / "calls").exists() else []

    def there(self):
        return sorted(str(path.relative_to(self.headers)) for path in self.headers.rglob("*") if path.is_file())

    def test_headers_and_the_libraries_that_tests_load_are_unpacked(self):
        self.assertEqual(self.fetch(), [f"dev: fetching headers of CUDA for the tests, 75 MB, into {self.headers}"])
        of_each = ("include/crt/host_defines.h", "include/cupti.h", "lib/libcudart.so.13", "lib/libcupti.so.13")
        self.assertEqual(self.there(), [f"{version}/{file}" for version in ("13.0", "13.5") for file in of_each] + ["unpacked.txt"])
        self.assertEqual(self.calls(), ["nvidia-cuda-cupti==13.0.85 --hash=sha256:aaaa", "nvidia-cuda-cupti==13.5.25 --hash=sha256:bbbb"])
        self.assertEqual(sorted(path.name for path in self.headers.parent.iterdir()), ["cuda-headers"])

    def test_what_is_there_is_kept_until_the_list_changes(self):
        self.fetch()
        self.assertEqual(self.fetch(), [])
        self.assertEqual(len(self.calls()), 2)
        (self.state / "list.txt").write_text(LIST.splitlines()[1] + "\n")
        self.assertEqual(len(self.fetch()), 1)
        self.assertEqual(len(self.calls()), 3)
        self.assertFalse((self.headers / "13.5").exists())

    def test_where_they_cannot_be_had_a_sentence_says_so_and_what_was_there_stays(self):
        self.fetch()
        (self.state / "fails").touch()
        (self.state / "list.txt").write_text(LIST + "13.1 nvidia-cuda-cupti 13.1.115 cccc\n")
        self.assertEqual(self.fetch()[-1], "dev: headers of CUDA could not be had, and the tests that need them are skipped: ERROR: no route to host")
        self.assertIn("13.0/include/cupti.h", self.there())
        self.assertEqual(sorted(path.name for path in self.headers.parent.iterdir()), ["cuda-headers"])

    def test_the_list_of_the_tree_has_a_digest_for_each_wheel(self):
        for line in (ROOT / "tools" / "cuda_headers.txt").read_text().splitlines():
            if not line.startswith("#"):
                self.assertRegex(line, r"^\d+\.\d+ +nvidia-cuda-\S+ +[0-9.]+ +[0-9a-f]{64}$")


if __name__ == "__main__":
    unittest.main()
