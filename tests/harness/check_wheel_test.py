#!/usr/bin/env python3
"""Does tools/check_wheel.py let a whole wheel pass, and find each thing that can be wrong with one?"""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_wheel  # noqa: E402

CXX = os.environ.get("CXX", "c++")
NAME = "ringmain-0.1.0-cp312-abi3-manylinux_2_99_x86_64.whl"


@unittest.skipUnless(shutil.which("readelf"), "readelf is not here")
class CheckWheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def library(self, name, source, *words):
        code = self.folder / "code.cpp"
        code.write_text(source)
        subprocess.run([CXX, "-shared", "-fPIC", "-nostdlib", "-Wl,-soname," + name, code, "-o", self.folder / name, *map(str, words)], check=True)
        return self.folder / name

    @staticmethod
    def digest(content):
        return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")

    def wheel(self, module="_native.abi3.so", place="$ORIGIN/lib", name=NAME, wants="helped", text="", left_out=False, listed=None):
        helper = self.library("libhelper.so.0", 'extern "C" void helped() {}')
        body = f'extern "C" void {wants}(); extern "C" void Py_Given(); extern "C" void begin() {{ {wants}(); Py_Given(); }}'
        made = self.library(module, body, helper, f"-Wl,-rpath,{place}", "-Wl,--no-as-needed")
        wheel = self.folder / name
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.write(made, f"ringmain/{module}")
            if not left_out:
                archive.write(helper, "ringmain/lib/libhelper.so.0")
            archive.writestr("ringmain/text.py", text)
            rows = {name: f"sha256={self.digest(archive.read(name))}" for name in archive.namelist()} | (listed or {})
            archive.writestr("ringmain-0.1.0.dist-info/RECORD", "".join(f"{name},{digest},1\n" for name, digest in rows.items()))
        return wheel

    def found(self, absent=(), **more):
        return check_wheel.check(self.wheel(**more), absent)

    def test_a_whole_one_passes(self):
        self.assertEqual(self.found(absent=["/nobodys/place"]), ([], 2))

    def test_a_library_that_is_not_where_it_is_looked_for(self):
        for wrong in ({"left_out": True}, {"place": "$ORIGIN/libs"}, {"place": "$ORIGIN/../lib"}):
            self.assertIn("ringmain/_native.abi3.so needs libhelper.so.0, which it does not find in the wheel", self.found(**wrong)[0], wrong)

    def test_a_place_outside_the_wheel(self):
        self.assertEqual(self.found(place="$ORIGIN/lib:/opt/lib")[0], ["ringmain/_native.abi3.so looks for libraries in /opt/lib, which is no place of the wheel"])

    def test_places_that_nobody_can_replace(self):
        (wrong,) = self.found(place="$ORIGIN/lib,--disable-new-dtags")[0]
        self.assertIn("has an RPATH", wrong)

    def test_a_symbol_that_nobody_has(self):
        self.assertEqual(self.found(wants="forgotten")[0], ["ringmain/_native.abi3.so wants forgotten, which nobody has"])

    def test_a_path_of_the_machine_that_built_it(self):
        self.assertEqual(self.found(absent=["/nobodys/place"], text="# /nobodys/place/file")[0], ["ringmain/text.py names /nobodys/place"])

    def test_a_module_that_is_not_what_the_name_says(self):
        (wrong,) = self.found(module="_native.cpython-312.so")[0]
        self.assertIn("ABI is abi3", wrong)
        (wrong,) = self.found(name=NAME.replace("abi3", "cp312"))[0]
        self.assertIn("ABI is cp312", wrong)

    def test_a_newer_c_library_than_the_name_promises(self):
        file = check_wheel.Loaded("ringmain/_native.abi3.so", self.wheel() and self.folder / "_native.abi3.so")
        file.needed, file.wants, file.glibc = [], set(), [(2, 28), (2, 34)]
        (wrong,) = check_wheel.about([file], "manylinux_2_28_x86_64")
        self.assertIn("needs glibc 2.34", wrong)
        self.assertEqual(list(check_wheel.about([file], "manylinux_2_34_x86_64")), [])

    def test_a_list_of_files_that_is_wrong(self):
        self.assertEqual(self.found(listed={"ringmain/text.py": "sha256=0"})[0],
                         ["RECORD, the wheel's list of its files, has not ringmain/text.py as it is"])

    def test_what_is_no_wheel_gets_a_sentence(self):
        ended = subprocess.run([sys.executable, ROOT / "tools" / "check_wheel.py", ROOT / "README.md"], capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("README.md is no name of a wheel of ringmain", ended.stdout)


if __name__ == "__main__":
    unittest.main()
