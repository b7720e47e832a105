#!/usr/bin/env python3
"""What does `ringmain doctor` say of CUDA, over the libraries that stand in for NVIDIA's?

usage: cuda_doctor_test.py DoctorTest, with the variables of cuda_run_test.py
"""

import json
import shutil
import subprocess
import sys

from cuda_run_test import BINARY, FAKES, TOOL, CudaRunTest, main


class DoctorTest(CudaRunTest):
    def doctor(self, libraries=None, **more):
        run = subprocess.run([BINARY, "doctor", "--json"], capture_output=True, text=True, check=False,
                             env=self.variables(libraries, **more))
        self.assertEqual((run.returncode, run.stderr), (0, ""))  # nor has a tool begun to speak
        (found,) = [one for one in json.loads(run.stdout)["findings"] if one["name"] == "CUDA"]
        return found

    def test_it_names_another_tool(self):
        found = self.doctor(CUDA_INJECTION64_PATH=TOOL)
        self.assertEqual(found["state"], "note")
        self.assertIn(f"CUDA_INJECTION64_PATH is set to {TOOL}", found["found"])

    def test_it_says_what_is_there(self):
        found = self.doctor()
        self.assertEqual((found["state"], found["mend"]), ("good", ""))
        self.assertRegex(found["found"], r"the driver is for CUDA 13\.0 \(completions too\); CUPTI 130001 at .*libcupti\.so\.13, takes a subscriber")
        self.assertEqual(found["found"].count(f"{FAKES}/libcupti.so.13"), 1, found)
        other = self.folder / "other"
        other.mkdir()
        shutil.copy(FAKES / "libcupti.so.13", other)
        found = self.doctor(f"{FAKES}:{other}")
        self.assertEqual([found["found"].count(f"{folder}/libcupti.so.13") for folder in (FAKES, other)], [1, 1], found)
        self.assertIn("for CUDA 11.8, completions take 12.0; CUPTI", self.doctor(FAKE_CUDA_VERSION="11080")["found"])
        found = self.doctor(FAKE_CUPTI_SUBSCRIBE="39:Nsight Something")
        self.assertEqual(found["state"], "note")
        self.assertIn("in use by Nsight Something", found["found"])

    def test_it_tells_a_driver_without_a_device(self):
        found = self.doctor(FAKE_CUDA_DEVICES="0")
        self.assertEqual(found["state"], "note")
        self.assertRegex(found["found"], r"^a driver, and no device: the driver is for CUDA 13\.0 \(completions too\); CUPTI 130001 at ")
        self.assertRegex(found["mend"], r"nvidia-smi -L.*CUDA_VISIBLE_DEVICES, which is not set$")
        found = self.doctor(FAKE_CUDA_DEVICES="0", CUDA_VISIBLE_DEVICES="7")
        self.assertTrue(found["mend"].endswith("CUDA_VISIBLE_DEVICES, which is '7'"), found)

    def test_it_calls_nothing_of_cupti_where_there_is_no_driver(self):
        folder = self.without("libcuda.so.1")
        found = self.doctor(folder, FAKE_CUPTI_VERSION="130202")  # it dies in its first call then, as the real one does
        self.assertEqual(found["state"], "note")
        self.assertIn("there is no NVIDIA driver", found["mend"])
        self.assertIn(f"libcupti is at {folder}/libcupti.so.13", found["found"])


if __name__ == "__main__":
    sys.exit(main())
