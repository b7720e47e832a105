"""Is the package typed, and do its stubs agree with the extension module?"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="mypy is not installed")
FOLDER = os.path.dirname(os.path.dirname(__import__("ringmain").__file__))


def mypy(*arguments, folder):
    return subprocess.run([sys.executable, "-m", "mypy", *arguments], capture_output=True, text=True, check=False, cwd=folder,
                          env={**os.environ, "MYPYPATH": FOLDER})


def test_the_package_is_clean_under_strict(tmp_path):
    # PyTorch's own modules take a minute to read, and may not be there.
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-torch.*]\nfollow_imports = skip\nignore_missing_imports = True\n")
    run = mypy("--config-file", str(tmp_path / "mypy.ini"), "--cache-dir", str(tmp_path), "-p", "ringmain", folder=FOLDER)
    assert run.returncode == 0, run.stdout + run.stderr


def signatures(stub):
    """Every function and property below its class, with the names of its arguments and their defaults' number."""
    found = {}

    def look(body, prefix):
        for node in body:
            if isinstance(node, ast.ClassDef):
                found[prefix + node.name] = None
                look(node.body, prefix + node.name + ".")
            elif isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
                arguments = node.args.posonlyargs + node.args.args
                found[prefix + node.name] = ([a.arg for a in arguments], len(node.args.defaults), node.args.kwarg is not None)

    look(ast.parse(stub).body, "")
    return found


def test_the_stubs_are_those_of_the_extension_module(tmp_path):
    made = tmp_path / "_native.pyi"
    run = subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "ringmain._native", "-o", str(made)],
                         capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    written = signatures((Path(FOLDER) / "ringmain" / "_native.pyi").read_text())
    public = {name: of for name, of in written.items() if not name.split(".")[-1].startswith("_")}
    assert public == signatures(made.read_text())


USER = """
import numpy as np
import ringmain

@ringmain.event("train.loss")
class Loss:
    step: int
    loss: float = 0.0

bus = ringmain.Bus()

@bus.on("train.*")
def seen(events: ringmain.Batch) -> None:
    total: float = float(events.array["loss"].sum())
    for event in events:
        print(event.loss, event.stamp, total)

told: ringmain.PublishResult = bus.publish(Loss(1))
ended: str = seen.remove()
"""


def test_a_users_program_is_checked_and_his_mistakes_are_found(tmp_path):
    program = tmp_path / "user.py"
    program.write_text(USER)
    run = mypy("--strict", "--cache-dir", str(tmp_path), str(program), folder=tmp_path)
    assert run.returncode == 0, run.stdout
    program.write_text(USER + 'bus.publish(Loss("one"))\nbus.subscribe(7, seen)\nseen.remove("soon")\n')
    run = mypy("--strict", "--cache-dir", str(tmp_path), str(program), folder=tmp_path)
    assert run.stdout.count("error:") == 3, run.stdout


CUDA = """
import ringmain.cuda

with ringmain.cuda.attach() as source:
    lost: bool = source.state == "lost"
later: bool = source.detach() == "deferred"
"""


def test_words_of_cudas_source_that_cannot_be_are_found(tmp_path):
    program = tmp_path / "user.py"
    program.write_text(CUDA)
    run = mypy("--strict", "--cache-dir", str(tmp_path), str(program), folder=tmp_path)
    assert run.returncode == 0, run.stdout
    program.write_text(CUDA.replace('"lost"', '"loost"').replace('"deferred"', '"later"'))
    run = mypy("--strict", "--cache-dir", str(tmp_path), str(program), folder=tmp_path)
    assert run.stdout.count("[comparison-overlap]") == 2, run.stdout
