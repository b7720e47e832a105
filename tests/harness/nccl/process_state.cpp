#include "tests/harness/nccl/process_state.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <malloc.h>

namespace ringmain::nccl_conformance {
namespace {

std::size_t entries(const char* folder) {
  std::error_code ignored;
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    (void)entry;
    ++found;
  }
  return found;
}

}  // namespace

std::size_t open_files() {
  return entries("/proc/self/fd");
}

std::vector<int> threads() {
  std::vector<int> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    found.push_back(std::stoi(entry.path().filename().string()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::size_t allocated_bytes() {
  const auto said = ::mallinfo2();
  return said.uordblks + said.hblkhd;
}

bool mapped(const std::string& path) {
  std::error_code failed;
  std::string real = std::filesystem::canonical(path, failed).string();
  if (failed) real = path;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(real)) return true;
  }
  return false;
}

}  // namespace ringmain::nccl_conformance
