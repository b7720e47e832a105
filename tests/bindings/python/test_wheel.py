"""Does what `pip install .` installs work by itself: the module, the program, what it loads, headers and CMake package?

Builds the wheel in build/wheel-… of the tree (a minute or two the first time), and installs it into an environment of its own.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
import ringmain

SOURCE = Path(os.environ.get("RINGMAIN_SOURCE", Path(__file__).resolve().parents[3]))
sys.path.insert(0, str(SOURCE / "tools"))
import check_wheel  # noqa: E402
CLEAN = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD")}


def run(*command, code=0, **more):
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                           **{"env": CLEAN, "cwd": "/", **more})
    assert ended.returncode == code, f"{command}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index", "-w", folder, SOURCE)
    (made,) = folder.glob("ringmain-*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The bin folder of a fresh environment that has the wheel, and NumPy from here."""
    folder = tmp_path_factory.mktemp("fresh") / "environment"
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    packages = run(folder / "bin" / "python", "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip()
    (Path(packages) / "numpy-of-the-tests.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return folder / "bin"


def test_the_wheel_carries_each_thing_once_and_no_link(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        for name in ("ringmain/py.typed", "ringmain/_native.pyi", "ringmain/bin/ringmain", "ringmain/lib/ringmain/ringmain-probe",
                     "ringmain/lib/ringmain/libringmain_nvtx.so", "ringmain/include/ringmain/bus/bus.hpp",
                     "ringmain/include/ringmain/c/ringmain.h", "ringmain/lib/cmake/ringmain/ringmainConfig.cmake",
                     "ringmain_autoload/__init__.py"):
            assert name in names
        (entry_points,) = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
        assert "[torch.backends]\nringmain = ringmain_autoload:autoload" in archive.read(entry_points).decode().replace("\r", "")
        libraries = sorted(name for name in names if name.startswith("ringmain/lib/libringmain"))
        major, minor = ringmain.__version__.split(".")[:2]
        soversion = f"0.{minor}" if major == "0" else major
        assert f"ringmain/lib/libringmain.so.{soversion}" in libraries
        assert all(name.endswith(f".so.{soversion}") for name in libraries), libraries
        for name in names:
            content = archive.read(name)
            if not content.startswith(b"\x7fELF"):
                assert str(SOURCE).encode() not in content, name


def test_what_the_loader_reads_of_the_wheel_leads_into_the_wheel(wheel):
    wrong, files = check_wheel.check(wheel, [SOURCE])
    assert not wrong
    assert files >= 15  # the module, the program, its libraries, what it loads into others


def test_the_wheel_holds_what_is_built_for_it_and_nothing_else_is_built(wheel):
    kept = {name.rpartition("/")[2] for name in zipfile.ZipFile(wheel).namelist()}
    (folder,) = (SOURCE / "build").glob(f"wheel-{'-'.join(wheel.stem.split('-')[2:])}")
    linked = run("ninja", "-C", folder, "-t", "commands", "ringmain_wheel").splitlines()
    outputs = {Path(word).name for line in linked if " -o " in line for word in [line.split(" -o ")[1].split()[0]]}
    products = {name for name in outputs if not name.endswith(".o")}
    assert products and products <= kept, products - kept


def test_the_program_works(installed):
    assert run(installed / "ringmain", "--version").startswith("ringmain ")
    assert "ringmain works here." in run(installed / "ringmain", "doctor")
    run(installed / "ringmain", "run", "--summary", "--", "true")
    run(installed / "ringmain", "run", "--summary", "--", "false", code=1)
    listed = run(installed / "ringmain", "providers")
    assert "json_lines" in listed and "nvtx" in listed
    assert run(installed / "python", "-m", "ringmain", "--version").startswith("ringmain ")


SCRIPT = """
import ringmain
from pathlib import Path
assert "fresh" in ringmain.__file__, ringmain.__file__
assert (Path(ringmain.get_include()) / "ringmain" / "bus" / "bus.hpp").exists() and Path(ringmain.program()).exists()
bus, heard = ringmain.Bus.process(), []
bus.subscribe("train.*", heard.append)
with bus.step(7, phase="forward"):
    pass
assert bus.flush(60)
print(sum(map(len, heard)))
"""


def test_the_source_of_cuda_is_carried(installed):
    assert run(installed / "python", "-c", "import ringmain.cuda; print(ringmain.cuda.attach.__name__)") == "attach\n"


def test_the_module_says_and_hears(installed):
    assert run(installed / "python", "-c", SCRIPT) == "4\n"


def test_ringmain_run_hears_what_python_says(installed, tmp_path):
    said = tmp_path / "said.jsonl"
    assert run(installed / "ringmain", "run", "--sink", f"json_lines:{said}", "--", installed / "python", "-c", SCRIPT) == "4\n"
    assert said.read_text().count('"channel":"train.step"') == 4


def test_a_cmake_project_finds_the_library_in_it(installed, tmp_path):
    if not shutil.which("cmake"):
        pytest.skip("there is no cmake here")
    prefix = run(installed / "python", "-c", "import ringmain; print(ringmain.cmake_prefix())").strip()
    run("cmake", "-S", SOURCE / "tests" / "install" / "consumer", "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={os.environ.get('CXX', 'c++')}")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "consumer") == "sum 5050\n"


def test_a_copy_without_the_program_says_so():
    program = "import sys; sys.argv = ['ringmain', 'doctor']; from ringmain import _cli; _cli.main()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1 and "carries no program" in ended.stderr
