#!/usr/bin/env python3
"""Where do the tests get NVIDIA's headers from?  cuda_headers.py LIST FOLDER

From the wheels in LIST (cuda_headers.txt), which pip downloads, each with the checksum that stands there. Headers go to
FOLDER/VERSION/include, the libraries of CUPTI and of the runtime to FOLDER/VERSION/lib. What is there is kept until LIST changes.
Where they cannot be had, one sentence says so, and the tests that need them are skipped: the exit status is 0 all the same.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WANTED = re.compile(r"nvidia/[^/]+/(include/(?:crt/)?[^/]+\.(?:h|hpp)|lib/lib(?:cupti|cudart)\.so\.\d+)")


def pinned(text):
    """{folder: [(package, version, digest)]} of the list."""
    folders = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            folder, *wheel = line.split()
            folders.setdefault(folder, []).append(tuple(wheel))
    return folders


def download(wheels, into):
    """Downloads wheels of different packages; raises CalledProcessError."""
    requirements = into / "requirements.txt"
    requirements.write_text("".join(f"{package}=={version} --hash=sha256:{digest}\n" for package, version, digest in wheels))
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes",
                    "--dest", into, "--requirement", requirements], check=True, capture_output=True, text=True)


def unpack(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            found = WANTED.fullmatch(name)
            if found is None:
                continue
            target = folder / found[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(name))


def fetch(folders, into):
    """Fills the folder `into`, which is empty."""
    def one(item):
        folder, wheels = item
        with tempfile.TemporaryDirectory(dir=into) as downloads:
            download(wheels, Path(downloads))
            for wheel in sorted(Path(downloads).glob("*.whl")):
                unpack(wheel, into / folder)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, folders.items()))


def main(list_file, folder):
    folder = Path(folder)
    wanted = Path(list_file).read_text()
    done = folder / "unpacked.txt"
    if done.exists() and done.read_text() == wanted:
        return 0
    folder.parent.mkdir(parents=True, exist_ok=True)
    print(f"dev: fetching headers of CUDA for the tests, 75 MB, into {folder}", flush=True)
    with tempfile.TemporaryDirectory(prefix="cuda-headers-", dir=folder.parent) as temporary:
        fresh = Path(temporary) / "fresh"
        fresh.mkdir()
        try:
            fetch(pinned(wanted), fresh)
        except (subprocess.CalledProcessError, OSError, zipfile.BadZipFile) as error:
            lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines() or ["nothing was said"]
            why = next((line for line in lines if line.startswith("ERROR: ")), lines[-1])
            print(f"dev: headers of CUDA could not be had, and the tests that need them are skipped: {why}", flush=True)
            return 0
        (fresh / done.name).write_text(wanted)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
