"""Do hooks of Python's hear operations of C++, in threads that have never run Python?"""

import ctypes
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from ringmain import comms

BUILD = Path(os.environ.get("RINGMAIN_BUILD", "build/release"))
SOURCE = Path(os.environ.get("RINGMAIN_SOURCE", Path(__file__).resolve().parents[3]))


@pytest.fixture(scope="module")
def issue(tmp_path_factory):
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        pytest.skip("there is no C++ compiler; set CXX")
    libraries = next(BUILD.rglob("libringmain_collective.so")).parent
    made = tmp_path_factory.mktemp("foreign") / "issue_in_cpp.so"
    subprocess.run([compiler, "-std=c++20", "-O1", "-shared", "-fPIC", f"-iquote{SOURCE}", Path(__file__).with_name("issue_in_cpp.cpp"),
                    "-o", made, f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lringmain_collective", "-lringmain", "-pthread"], check=True)
    function = ctypes.CDLL(str(made)).issue_in_another_thread
    function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
    return lambda bus, group, count, rank=0: function(bus._native.address, group.encode(), rank, count)


@pytest.fixture
def comm(bus):
    made = comms.new_comm("loopback", name="shared", bus=bus)
    yield made
    made.finalize()


def test_all_three_hooks_hear_an_operation_of_cpp_in_its_thread(bus, comm, issue):
    seen, threads = [], set()

    def keep(args):
        seen.append(args)
        threads.add(threading.get_ident())

    handles = [comm.register_pre_hook(keep), comm.register_post_hook(keep), comm.register_completion_hook(keep)]
    assert issue(bus, "shared", 1) == 0
    for handle in handles:
        handle.remove()
    before, after, end = seen
    assert before.op_id == after.op_id == end.op_id and (before.name, before.async_op, before.op) == ("all_reduce", True, comms.ReduceOp.MAX)
    tensor = before.tensor
    assert (tensor.shape, tensor.dtype, tensor.nbytes, tensor.device) == ((2, 3), "float32", 24, 1) and tensor.data != 0
    assert (after.work, after.outcome, after.async_op, end.how) == (None, "issued", None, "completed")
    assert len(threads) == 1 and threads != {threading.get_ident()}


def test_an_exception_refuses_an_operation_of_cpp_and_is_logged_once(bus, comm, issue, caplog):
    def broken(args):
        raise ValueError("out of cheese")

    after = []
    handle = comm.register_pre_hook(broken)
    comm.register_post_hook(after.append)
    assert issue(bus, "shared", 3) == 3
    handle.remove()
    assert handle.raised == 3 and len(caplog.records) == 1
    assert [args.reason for args in after] == ["ValueError: out of cheese"] * 3
    assert issue(bus, "shared", 1) == 0


def test_a_thread_of_cpp_gets_the_gil_while_pythons_work_and_hooks_come_and_go(bus, comm, issue):
    seen, ends, stop = [], [], threading.Event()

    def work():
        while not stop.is_set():
            handle = comm.register_pre_hook(lambda args: None)
            handle.remove()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    comm.register_pre_hook(lambda args: seen.append(args.op_id))
    comm.register_completion_hook(lambda end: ends.append(end.op_id))
    assert issue(bus, "shared", 200) == 0
    stop.set()
    for worker in workers:
        worker.join()
    assert seen == ends and len(set(seen)) == 200


def test_on_the_dispatcher_no_thread_of_cpp_takes_the_gil(bus, comm, issue, long):
    ends, threads = [], set()

    def hear(end):
        ends.append(end.op_id)
        threads.add(threading.current_thread().name)

    handle = comm.register_completion_hook(hear, on_dispatcher=True)
    assert issue(bus, "shared", 50) == 0
    assert bus.flush(long)
    assert len(set(ends)) == 50 and threads == {"test-dispatcher"}
    assert handle.remove() == "done"
