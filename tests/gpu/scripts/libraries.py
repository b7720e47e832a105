"""Makes a handle of each of NVIDIA's libraries that is here, and takes it back. 77: none is."""

import ctypes
import glob
import os
import site
import sys


def load(name):
    places = os.environ.get("LD_LIBRARY_PATH", "").split(":") + [one for packages in site.getsitepackages() for one in glob.glob(f"{packages}/nvidia/*/lib")]
    for path in [one for place in places if place for one in sorted(glob.glob(f"{place}/{name}.so.*"), key=len)]:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    try:
        return ctypes.CDLL(f"{name}.so")
    except OSError:
        return None


def try_out(name, create, destroy):
    library, handle = load(name), ctypes.c_void_p()
    if library is None:
        return None
    if (code := create(library, ctypes.byref(handle))) == 0:
        destroy(library, handle)
    return f"{name}: {code}"


def nccl(library, handle):
    return library.ncclCommInitAll(handle, 1, (ctypes.c_int * 1)(0))


used = [one for one in (try_out("libcublas", lambda of, to: of.cublasCreate_v2(to), lambda of, what: of.cublasDestroy_v2(what)),
                        try_out("libcudnn", lambda of, to: of.cudnnCreate(to), lambda of, what: of.cudnnDestroy(what)),
                        try_out("libnccl", nccl, lambda of, what: of.ncclCommDestroy(what))) if one]
print(", ".join(used))
sys.exit(0 if used else 77)
