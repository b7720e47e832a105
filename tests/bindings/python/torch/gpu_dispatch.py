"""PyTorch's genuine C++ dispatch of the ten GPU-trace kinds, without a GPU: a small library linked to its c10."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

# As PyTorch's registries are called, in the order in which the library says them, with what each is told.
EVENT, STREAM, ADDRESS = 0xE0, 0x50, 0xADD0
SAID = [("StreamCreation", (STREAM,)), ("EventCreation", (EVENT,)), ("EventRecord", (EVENT, STREAM)),
        ("EventWait", (EVENT, STREAM)), ("MemoryAllocation", (ADDRESS,)), ("StreamSynchronization", (STREAM,)),
        ("EventSynchronization", (EVENT,)), ("DeviceSynchronization", ()), ("MemoryDeallocation", (ADDRESS,)),
        ("EventDeletion", (EVENT,))]


def build(folder):
    """The library, built once per folder; its trace is activated, which holds for the rest of the process."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if not compiler:
        pytest.skip("there is no g++ to build the library that speaks to PyTorch's c10")
    torch_folder = Path(torch.__file__).parent
    library = Path(folder) / "fire_gpu_trace.so"
    subprocess.run([compiler, "-std=c++20", "-O1", "-fPIC", "-shared", f"-I{torch_folder}/include",
                    f"-I{torch_folder}/include/torch/csrc/api/include", Path(__file__).with_name("fire_gpu_trace.cpp"),
                    "-o", library, f"-L{torch_folder}/lib", "-lc10", f"-Wl,-rpath,{torch_folder}/lib"], check=True)
    torch._C._activate_gpu_trace()
    loaded = ctypes.CDLL(str(library))
    for function in (loaded.fire, loaded.fire_elsewhere):
        function.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t]
        function.restype = None
    return loaded


def fire(library, times=1, elsewhere=False, event=EVENT):
    (library.fire_elsewhere if elsewhere else library.fire)(times, event, STREAM, ADDRESS)
