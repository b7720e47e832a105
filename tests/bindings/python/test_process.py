"""Does a process end, and fork, as it would without ringmain? Each script runs in a process of its own.

No script may end with a warning of nanobind's, which names at exit what was never freed.
"""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import os, sys, threading, time
import ringmain

@ringmain.event("test.tick")
class Tick:
    n: int
"""


def run(script, *, code=0, limit=120):
    ended = subprocess.run([sys.executable, "-c", PRELUDE + textwrap.dedent(script)], capture_output=True, text=True,
                           timeout=limit, check=False)
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert "nanobind" not in ended.stderr, ended.stderr
    assert "terminate called" not in ended.stderr and "Fatal Python error" not in ended.stderr, ended.stderr
    return ended


@pytest.mark.parametrize("bus", ["ringmain.Bus.process()", "ringmain.Bus()"])
def test_exit_with_a_live_bus_hears_what_was_said_and_lets_all_go(bus):
    ended = run(f"""
        bus = {bus}
        heard = []

        @bus.on("test.*")
        def seen(events):
            global bus  # a callback that knows its bus
            heard.append(len(events))
            print(sum(heard), flush=True)

        guard = bus.subscribe_inline(Tick, lambda event: bus is not None)
        box = bus.mailbox(">")
        for n in range(1000):
            assert bus.publish(Tick(n))
        batch = box.take()
        """)
    assert ended.stdout.split()[-1] == "1000"
    assert ended.stderr == ""


def test_sys_exit_and_errors_keep_their_status():
    run("bus = ringmain.Bus.process(); bus.subscribe('>', print); sys.exit(3)", code=3)
    ended = run("bus = ringmain.Bus.process(); bus.subscribe('>', print); raise KeyError('mine')", code=1)
    assert "KeyError: 'mine'" in ended.stderr


def test_import_alone_starts_no_thread():
    ended = subprocess.run([sys.executable, "-c", "import numpy, os; tasks = lambda: len(os.listdir('/proc/self/task')); "
                            "before = tasks(); import ringmain; print(tasks() - before)"], capture_output=True, text=True, check=True)
    assert ended.stdout == "0\n"


def test_daemon_threads_that_publish_flush_and_wait_do_not_disturb_the_exit():
    for _ in range(5):
        ended = run("""
            bus = ringmain.Bus.process()
            bus.subscribe("test.*", lambda events: None)
            channel = bus.channel(Tick)
            box = bus.mailbox("other.*")
            ready = threading.Barrier(4)

            def forever(what):
                ready.wait()
                while True:
                    what()

            for what in (lambda: channel.publish(n=1), lambda: bus.flush(1), lambda: box.wait()):
                threading.Thread(target=forever, args=(what,), daemon=True).start()
            ready.wait()
            """)
        assert ended.stderr == ""


def test_a_callback_that_never_returns_does_not_hold_the_exit_up():
    ended = run("""
        bus = ringmain.Bus.process()
        inside = threading.Event()

        @bus.on("test.*")
        def stuck(events):
            inside.set()
            while True:
                time.sleep(0.01)

        bus.publish(Tick(1))
        inside.wait()
        print("out", flush=True)
        """)
    assert ended.stdout == "out\n"


def test_what_is_said_at_exit_is_heard_or_refused_and_nothing_hangs():
    ended = run("""
        import atexit
        bus = ringmain.Bus.process()

        @atexit.register
        def early():  # after ringmain's own handler, which was registered at the import
            bus.subscribe("test.*", lambda events: print("heard", len(events), flush=True))
            bus.publish(Tick(1))
            assert bus.flush(60)
        """)
    assert ended.stdout == "heard 1\n"


def test_an_interrupt_ends_a_flush():
    script = PRELUDE + textwrap.dedent("""
        bus = ringmain.Bus.process()
        go = threading.Event()
        bus.subscribe("test.*", lambda events: (print("inside", flush=True), go.wait(100)))
        bus.publish(Tick(1))
        try:
            bus.flush()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            go.set()
        """)
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "inside\n"
    child.send_signal(signal.SIGINT)
    rest, _ = child.communicate(timeout=120)
    assert (rest, child.returncode) == ("interrupted\n", 0)


# --- fork ---

def test_a_forked_child_neither_hears_nor_hangs_and_may_have_a_bus_of_its_own():
    ended = run("""
        bus = ringmain.Bus.process()
        heard = []
        seen = bus.subscribe("test.*", lambda events: heard.extend(r.n for r in events))
        guard = bus.subscribe_inline(Tick, lambda event: True)
        box = bus.mailbox(">")
        assert bus.publish(Tick(1)) and bus.flush(60)
        kept = box.take()
        for round in range(5):
            child = os.fork()
            if child == 0:
                assert bus.forked
                assert bus.publish(Tick(2)).code == "forked"
                assert not bus.flush(60)
                assert seen.remove() == "was_not_attached" and guard.remove() == "was_not_attached"
                assert seen.stats() is not None and box.take() is None and not box.wait(0)
                box.close()
                try:
                    bus.subscribe(">", print)
                except RuntimeError as error:
                    assert "make a Bus here" in str(error), error
                else:
                    assert False
                assert kept[0].n == 1  # memory that was taken before is the child's own copy
                assert bus.close()
                with ringmain.Bus("child") as own:
                    got = []
                    own.subscribe("test.*", lambda events: got.extend(r.n for r in events))
                    assert own.publish(Tick(3)) and own.flush(60)
                    assert got == [3], got
                sys.exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            assert bus.publish(Tick(4)) and bus.flush(60)
        assert heard == [1] + [4] * 5, heard
        """)
    assert ended.stderr == ""


def test_forks_while_the_dispatcher_is_busy_do_not_deadlock():
    ended = run("""
        bus = ringmain.Bus.process()
        bus.subscribe("test.*", lambda events: [record.n for record in events])
        stop = threading.Event()

        def publish():
            while not stop.is_set():
                for n in range(200):
                    bus.publish(Tick(n))
                bus.flush(60)

        threads = [threading.Thread(target=publish) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(40):
            child = os.fork()
            if child == 0:
                ringmain.name("a name of the child's")
                bus.publish(Tick(1))
                bus.stats() if False else bus.close()
                sys.exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.set()
        for thread in threads:
            thread.join()
        """)
    assert "Exception" not in ended.stderr


def test_multiprocessing_by_fork_works_like_the_workers_of_a_data_loader():
    ended = run("""
        import multiprocessing

        bus = ringmain.Bus.process()
        heard = []
        bus.subscribe("test.*", lambda events: heard.extend(r.n for r in events))

        def load(n):
            told = bus.publish(Tick(n)).code
            with ringmain.Bus("worker") as own, own.mailbox("test.*") as box:
                own.publish(Tick(n))
                assert box.wait(60)
                return told, [r.n for batch in box for r in batch]

        with multiprocessing.get_context("fork").Pool(3) as pool:
            for n, (told, own) in enumerate(pool.imap(load, range(30))):
                assert (told, own) == ("forked", [n])
                assert bus.publish(Tick(n))
        assert bus.flush(60)
        assert heard == list(range(30)), heard
        print("done")
        """)
    assert ended.stdout == "done\n"


def test_a_callback_may_fork(tmp_path):
    ended = run("""
        bus = ringmain.Bus.process()

        @bus.on("test.*")
        def seen(events):
            child = os.fork()
            if child == 0:
                os._exit(5)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

        assert bus.publish(Tick(1)) and bus.flush(60)
        """)
    assert ended.stdout == "5\n"


# --- publishing needs no GIL ---

def test_threads_of_cxx_publish_while_python_holds_the_gil():
    program = os.path.join(os.environ.get("RINGMAIN_BUILD", ""), "bin", "ringmain")
    if not os.path.exists(program):
        pytest.skip("built without the program (RINGMAIN_BUILD_CLI)")
    script = PRELUDE + textwrap.dedent("""
        bus = ringmain.Bus.process()
        heard = []
        bus.subscribe("heartbeat.*", lambda events: heard.append(len(events)))
        offered = lambda: bus.stats().channels["heartbeat.beat"].offered
        end = time.monotonic() + 60
        while not heard:
            assert time.monotonic() < end
        sys.setswitchinterval(1000)  # this thread keeps the GIL from here on
        calls = None
        while calls != len(heard):  # a thread that had asked for the GIL before may get it once more
            calls, begun = len(heard), offered()
            while offered() < begun + 50:
                assert time.monotonic() < end
        sys.setswitchinterval(0.005)
        assert bus.flush(60)
        assert sum(heard) >= 50
        print("done")
        """)
    ended = subprocess.run([program, "run", "--source", "heartbeat:1", "--summary", "--", sys.executable, "-c", script],
                           capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
