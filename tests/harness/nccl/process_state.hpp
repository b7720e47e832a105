// What of a process must not grow, or be left behind, when a plugin is loaded and unloaded?
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace ringmain::nccl_conformance {

std::size_t open_files();
/// Threads, by their numbers in Linux.
std::vector<int> threads();
/// Bytes that malloc has handed out; 0 if a sanitizer's malloc does not say.
std::size_t allocated_bytes();
/// Whether a library of this path is mapped.
bool mapped(const std::string& path);

}  // namespace ringmain::nccl_conformance
