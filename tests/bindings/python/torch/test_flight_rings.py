"""The rings that `ringmain run --flight` leaves of a job of PyTorch's, as `ringmain fr` and PyTorch's analyzer read them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from flight_files import CULPRIT, PROGRAM, fr_trace, judged, merge, quiet


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        pytest.skip("this PyTorch has no gloo")
    folder = tmp_path_factory.mktemp("rings")
    ran = subprocess.run([PROGRAM, "run", "--flight", "collective.>", "--", sys.executable, Path(__file__).parent / "flight_rings.py", folder],
                         capture_output=True, text=True, check=False,
                         env=os.environ | {"RINGMAIN_FLIGHT_DIR": str(folder / "left"), "OMP_NUM_THREADS": "1"})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


def test_who_left_an_operation_out_is_named_by_the_rings(job):
    verdict, status = judged(job / "left")
    assert (status, verdict["culprits"], verdict["missing"]) == (1, [CULPRIT], []), verdict
    assert verdict["findings"][0]["kind"] == "not_joined" and verdict["findings"][0]["operation"] == "all_reduce"


def test_nothing_is_found_in_the_rings_of_a_job_that_is_well_nor_by_pytorch_in_what_is_made_of_them(job, tmp_path):
    verdict, status = judged(job / "whole")
    assert (verdict["findings"], status) == ([], 0), verdict
    merge(job / "whole", tmp_path, "")
    assert len(list(tmp_path.glob("rank_*"))) == 3
    said = fr_trace(tmp_path)
    assert quiet(said), said


def test_pytorchs_analyzer_finds_the_same_rank_in_what_is_made_of_the_rings(job, tmp_path):
    merge(job / "left", tmp_path, "")
    said = fr_trace(tmp_path)
    assert "Not all ranks joining collective" in said and f"missing ranks: {{{CULPRIT}}}" in said, said
