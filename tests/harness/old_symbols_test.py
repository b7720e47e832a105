#!/usr/bin/env python3
"""Is what is linked with tools/old_symbols.py for systems with glibc 2.28, and does it still do what it did?"""

import os
import platform
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CXX = os.environ.get("CXX", "c++")

# Each line needs something that newer systems have in another version, or that older ones have not at all.
PROGRAM = r"""
#include <charconv>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

const bool constructed = std::puts("constructed") >= 0;
struct AtTheEnd {
  ~AtTheEnd() { std::puts("destroyed"); }
} at_the_end;

int counted = 0;
struct Counted : std::runtime_error {
  Counted() : std::runtime_error("thrown") { ++counted; }
  Counted(const Counted& other) : std::runtime_error(other) { ++counted; }
  ~Counted() override { --counted; }
};

int main(int count, char** words) {
  std::printf("%d %s\n", count, words[1]);
  struct stat of_root;
  if (stat("/", &of_root) != 0 || !S_ISDIR(of_root.st_mode) || stat("/absent", &of_root) == 0) return 1;
  if (!std::filesystem::is_directory("/") || std::filesystem::path("/a/../b").lexically_normal() != "/b") return 2;
  if (gettid() != getpid() || std::strcmp(sigabbrev_np(SIGSEGV), "SEGV") != 0 || sigabbrev_np(0) != nullptr) return 3;
  char text[32];
  if (*std::to_chars(text, text + sizeof text, 1.25).ptr = 0; std::strcmp(text, "1.25") != 0) return 4;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_set = false;
  std::thread([&] {
    std::lock_guard held(mutex);
    is_set = true;
    changed.notify_all();
  }).detach();
  std::unique_lock held(mutex);
  if (!changed.wait_for(held, std::chrono::minutes(5), [&] { return is_set; })) return 5;
  if (changed.wait_until(held, std::chrono::steady_clock::now(), [] { return false; })) return 6;
  {
    std::exception_ptr first;
    try {
      throw Counted();
    } catch (...) {
      first = std::current_exception();
    }
    std::exception_ptr second = first;
    first = nullptr;
    try {
      std::rethrow_exception(second);
    } catch (const std::runtime_error& error) {
      std::puts(error.what());
    }
    if (counted != 1) return 7;
  }
  if (counted != 0) return 8;
  if (dlsym(RTLD_DEFAULT, "getpid") == nullptr) return 9;
  std::set_terminate([] { std::puts("own end"); std::fflush(stdout); _exit(0); });
  [](auto call) noexcept { call(); }([] { throw 1; });
}
"""
# Without the C library's own: what is called where it has none.
CLOCKWAIT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#define dlsym(handle, name) NULL
#define pthread_cond_clockwait old_clockwait
#include "clockwait.c"
#include <stdio.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_set;
static void* set(void* unused) {
  pthread_mutex_lock(&mutex);
  is_set = 1;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&mutex);
  return unused;
}
static struct timespec in(clockid_t clock, long milliseconds) {
  struct timespec time;
  clock_gettime(clock, &time);
  const long long all = nanoseconds(&time) + milliseconds * 1000000LL;
  return (struct timespec){all / kSecond, all % kSecond};
}
int main(void) {
  pthread_mutex_lock(&mutex);
  const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};
  for (int i = 0; i < 2; ++i) {
    struct timespec until = in(clocks[i], -1);
    if (pthread_cond_clockwait(&changed, &mutex, clocks[i], &until) != ETIMEDOUT) return 1;
    until = in(clocks[i], 1200);  // more than one wait of a second
    int said = 0;
    while (said == 0) said = pthread_cond_clockwait(&changed, &mutex, clocks[i], &until);
    const struct timespec now = in(clocks[i], 0);
    if (said != ETIMEDOUT || nanoseconds(&now) < nanoseconds(&until)) return 2;
    pthread_t thread;
    is_set = 0;
    until = in(clocks[i], 300000);
    pthread_create(&thread, NULL, set, NULL);
    while (!is_set)
      if (pthread_cond_clockwait(&changed, &mutex, clocks[i], &until) != 0) return 3;
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    pthread_mutex_lock(&mutex);
  }
  return pthread_cond_clockwait(&changed, &mutex, -12345, &(struct timespec){0, 0}) == EINVAL ? 0 : 4;
}
"""


def run(*command, **more):
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    assert ended.returncode == 0, f"{command}: {ended.returncode}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


def versions(file):
    said = run("readelf", "--wide", "--version-info", file)
    return {(family, tuple(map(int, number.split(".")))) for family, number in re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI)_([\d.]+) ", said)}


def gcc():
    return platform.machine() == "x86_64" and "Free Software Foundation" in run(CXX, "--version")


@unittest.skipUnless(gcc(), "portable wheels are made by GCC on x86-64")
class OldSymbolsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        run(sys.executable, ROOT / "tools" / "old_symbols.py", cls.folder / "old", "--cxx", CXX)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def link(self, name, *words):
        source = self.folder / f"{name}.cpp"
        source.write_text(PROGRAM)
        run(CXX, "-std=c++20", "-O1", source, *words, "-o", self.folder / name)
        return self.folder / name

    def test_a_program_does_the_same_and_asks_for_nothing_new(self):
        plain = self.link("plain")
        old = self.link("old_program", f"-L{self.folder / 'old'}", "-Wl,--exclude-libs,libstdc++.a:libold_runtime.a")
        said = run(old, "word")
        self.assertEqual(said, run(plain, "word"))
        self.assertEqual(said.splitlines()[-1], "own end")
        newest = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11)}
        self.assertTrue(any(number > newest[family] for family, number in versions(plain)), "this test's program needs nothing new")
        self.assertFalse([found for found in versions(old) if found[1] > newest[found[0]]])
        self.assertIn("[libpthread.so.0]", run("readelf", "--dynamic", old), "a system with an old glibc has threads there")
        self.assertNotRegex(run("readelf", "--wide", "--dyn-syms", old), "UND .*_M_start_thread", "an old libstdc++ may find no threads")

    def test_a_wait_by_a_clock_ends_by_that_clock_where_the_library_has_none(self):
        source = self.folder / "waits.c"
        source.write_text(CLOCKWAIT)
        run(CXX, "-x", "c", "-std=gnu17", "-O1", f"-I{ROOT / 'tools' / 'old_runtime'}", source, "-o",
            self.folder / "waits")
        run(self.folder / "waits", timeout=600)

    def test_where_it_cannot_be_done_a_sentence_says_so(self):
        ended = subprocess.run([sys.executable, ROOT / "tools" / "old_symbols.py", self.folder / "none", "--cxx", "/bin/false"],
                               capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 1)
        self.assertTrue(ended.stderr.startswith("old_symbols: "), ended.stderr)
        self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)


if __name__ == "__main__":
    unittest.main()
