"""What machine is this: is there a driver, a GPU, a CUPTI, a PyTorch that can use them?"""

import ctypes
import glob
import importlib.util
import json
import os
import shutil
import site
import subprocess
import sys
from pathlib import Path


def library_folders():
    """Where a libcupti and a libcudart may lie, the toolkit's first."""
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    if nvcc := shutil.which("nvcc"):
        roots.append(str(Path(nvcc).resolve().parent.parent))
    roots += sorted(glob.glob("/usr/local/cuda*"), reverse=True)
    found = [Path(root) / below for root in roots if root for below in ("extras/CUPTI/lib64", "lib64", "lib", "targets/x86_64-linux/lib")]
    for packages in [*site.getsitepackages(), site.getusersitepackages(), *sys.path]:
        found += [Path(one) for one in glob.glob(f"{packages}/nvidia/*/lib")]
    return list(dict.fromkeys(str(one) for one in found if glob.glob(f"{one}/libcup*.so*") or glob.glob(f"{one}/libcudart.so*")))


def ask():
    """Asked in a process of its own: a driver that is not well may end it. Without a driver CUPTI is not asked anything."""
    answer = {"gpu": None}
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return {**answer, "why": "there is no NVIDIA driver (libcuda.so.1)"}
    if (code := driver.cuInit(0)) != 0:
        return {**answer, "why": f"the driver does not start: cuInit answered {code}"}
    count, version = ctypes.c_int(0), ctypes.c_int(0)
    driver.cuDriverGetVersion(ctypes.byref(version))
    answer["cuda_of_driver"] = version.value
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return {**answer, "why": "the driver has no GPU"}
    answer["gpus"] = count.value
    if hasattr(driver, "cuDeviceGetName"):  # stand-ins have no name
        name = ctypes.create_string_buffer(128)
        driver.cuDeviceGetName(name, 128, 0)
        answer["gpu"] = name.value.decode()
    else:
        answer["gpu"] = "none: libraries that stand in for CUDA's"
    for soname in ("libcupti.so.13", "libcupti.so.12"):
        try:
            cupti, number = ctypes.CDLL(soname), ctypes.c_uint32(0)
            cupti.cuptiGetVersion(ctypes.byref(number))
            answer["cupti"] = number.value
            answer["cupti_file"] = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libcupti" in line)
            break
        except OSError:
            continue
    return answer


def probe(variables):
    run = subprocess.run([sys.executable, __file__], env=variables, capture_output=True, text=True, check=False)
    if run.returncode != 0 or not run.stdout.strip():
        return {"gpu": None, "why": f"asking the driver ended with status {run.returncode}: {run.stderr.strip()[-200:]}"}
    answer = json.loads(run.stdout.strip().splitlines()[-1])
    if answer["gpu"] and shutil.which("nvidia-smi"):
        smi = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True, check=False)
        answer["driver"] = smi.stdout.strip().splitlines()[0] if smi.stdout.strip() else "not known"
    answer["python"] = sys.version.split()[0]
    answer["cpus"] = os.cpu_count()
    answer["torch"] = importlib.util.find_spec("torch") is not None
    return answer


if __name__ == "__main__":
    print(json.dumps(ask()))
