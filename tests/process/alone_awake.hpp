// When may a sanitized process fork? While no other thread of it is at anything.
#pragma once
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>

namespace ringmain::tests {

/// Waits until every other thread sleeps, for a second at most: one that a test keeps busy does not
/// allocate. A sanitizer's malloc keeps its locks across fork(), so a child born while another
/// thread allocates, as a starting one does, would wait for that lock for ever.
inline void wait_until_alone_awake() {
  const auto all_sleep = [] {
    const std::string self = std::to_string(::gettid());
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string stat;
      std::getline(std::ifstream(task.path() / "stat"), stat);
      const std::size_t state = stat.rfind(") ");
      if (task.path().filename() != self && state != stat.npos && stat[state + 2] != 'S') {
        return false;
      }
    }
    return true;
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (!all_sleep() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

}  // namespace ringmain::tests
