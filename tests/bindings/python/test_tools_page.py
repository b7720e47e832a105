"""Do the programs of docs/python-tools.md run as they stand, each where the packages that it imports are there?"""

import ast
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("RINGMAIN_SOURCE", Path(__file__).resolve().parents[3]))
SHOWN = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "python-tools.md").read_text(encoding="utf-8"), re.M | re.S)


def packages_of(program):
    """The first words of what it imports."""
    for node in ast.walk(ast.parse(program)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        yield from (name.split(".")[0] for name in names)


def test_the_page_shows_programs():
    assert SHOWN and all("ringmain" in set(packages_of(program)) for program in SHOWN)


@pytest.mark.parametrize("program", SHOWN, ids=range(len(SHOWN)))
def test_what_the_page_shows_runs_as_it_stands(program, tmp_path):
    missing = sorted({name for name in packages_of(program) if importlib.util.find_spec(name) is None})
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path,
                           env={**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true"})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr, ended.stderr
