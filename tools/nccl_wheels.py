#!/usr/bin/env python3
"""Where do the tests get NVIDIA's NCCL from?  nccl_wheels.py LIST FOLDER [VERSION]

From the wheel of VERSION in LIST (nccl_wheels.txt; the first, if no VERSION is given), which pip downloads with the checksum that
stands there. Its library goes to FOLDER/VERSION/lib, its headers to FOLDER/VERSION/include, and what is there is kept until the
line in LIST changes. Where it cannot be had, one sentence says so, and the tests that need it are skipped: the exit status is 0
all the same. A VERSION that LIST has not: 2.
"""

import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import cuda_headers

WANTED = re.compile(r"nvidia/nccl/(lib/libnccl\.so\.2|include/nccl\.h)")


def unpack(wheel, folder):
    """Unpacks what WANTED names; raises OSError if the library is not there."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            found = WANTED.fullmatch(name)
            if found is None:
                continue
            target = folder / found[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as packed, target.open("wb") as file:
                shutil.copyfileobj(packed, file, 1 << 20)
    if not (folder / "lib" / "libnccl.so.2").exists():
        raise OSError(f"{wheel.name} has no libnccl.so.2")


def why(error):
    """One line of what pip or the system said."""
    lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines() or ["nothing was said"]
    return next((line for line in lines if line.startswith("ERROR: ")), lines[-1])


def fetch(version, wheel, folder):
    folder.mkdir(parents=True, exist_ok=True)
    print(f"dev: fetching NCCL {version} for the tests, 300 MB, into {folder / version}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder) as temporary:
        fresh = Path(temporary) / "fresh"
        fresh.mkdir()
        try:
            if platform.machine() != "x86_64":
                raise OSError(f"the list has wheels for x86_64, not for {platform.machine()}")
            cuda_headers.download([wheel], Path(temporary))
            for file in Path(temporary).glob("*.whl"):
                unpack(file, fresh)
        except (subprocess.CalledProcessError, OSError, zipfile.BadZipFile) as error:
            print(f"dev: NCCL {version} could not be had, and the tests that need it are skipped: {why(error)}", flush=True)
            return
        (fresh / "unpacked.txt").write_text(" ".join(wheel))
        shutil.rmtree(folder / version, ignore_errors=True)
        fresh.rename(folder / version)


def main(list_file, folder, version=None):
    listed = cuda_headers.pinned(Path(list_file).read_text())
    version = version or next(iter(listed))
    if version not in listed:
        print(f"dev: there is no NCCL {version} in {list_file}, which has {', '.join(listed)}", file=sys.stderr)
        return 2
    (wheel,) = listed[version]
    done = Path(folder) / version / "unpacked.txt"
    if not done.exists() or done.read_text() != " ".join(wheel):
        fetch(version, wheel, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
