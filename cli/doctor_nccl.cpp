// What is there of NCCL for `ringmain run --source nccl`, and what is in its way?
//
// NCCL is looked for as the wrapper does, by the loader: what a program has inside, or finds in
// Python's packages, is not seen from here.
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <strings.h>
#include <sys/statvfs.h>
#include <system_error>

#include "adapters/library_folder.hpp"

#include "cli/doctor.hpp"

namespace ringmain::cli {
namespace {

using State = Finding::State;

void add(std::string& to, const std::string& sentence) {
  to += (to.empty() ? "" : "; ") + sentence;
}

/// What another tool's variable means for a run.
void look_at_place(const std::string& own, Finding& f) {
  const char* const named = std::getenv("NCCL_PROFILER_PLUGIN");
  if (named == nullptr || *named == '\0' || own == named) return;
  add(f.found, std::string("NCCL_PROFILER_PLUGIN is set to ") + named);
  if (::strcasecmp(named, "none") == 0) return;
  f.state = State::note;
  add(f.mend, "ringmain run puts that plugin behind its own, and both hear NCCL");
}

/// "2.32.3": a code is 23203.
std::string version_of(int code) {
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
         std::to_string(code % 100);
}

/// NCCL's own code is asked for its version, which needs no driver.
void look_for_library(Finding& f) {
  void* const library = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    return add(f.found,
               "the loader finds no libnccl.so.2 (programs may bring their own, as PyTorch does)");
  }
  using GetVersion = int(int*);
  auto* const get = reinterpret_cast<GetVersion*>(::dlsym(library, "ncclGetVersion"));
  int code = 0;
  Dl_info where{};
  const bool is_known = get != nullptr && get(&code) == 0;
  const bool has_path = get != nullptr && ::dladdr(reinterpret_cast<void*>(get), &where) != 0;
  add(f.found, "NCCL " + (is_known ? version_of(code) : std::string("of an unknown version")) +
                   " at " + (has_path ? where.dli_fname : "libnccl.so.2"));
  if (!is_known || code >= 22700) return;
  f.state = State::note;
  add(f.mend, "that NCCL asks for no plugin of a version that ringmain has: take 2.27 or later");
}

/// Kernel channels need room there: NCCL crashes where it has none (docs/nccl.md).
void look_at_memory(Finding& f) {
  constexpr std::uint64_t kBytesMin = 128ull << 20;
  struct statvfs there {};
  const bool is_there = ::statvfs("/dev/shm", &there) == 0;
  if (!is_there || (there.f_flag & ST_RDONLY) != 0) {
    f.state = State::note;
    add(f.found, is_there ? "/dev/shm cannot be written to" : "there is no /dev/shm");
    return add(f.mend, "nccl.kernel_channel is left out without a /dev/shm: mount a tmpfs there");
  }
  const std::uint64_t free = std::uint64_t{there.f_bavail} * there.f_frsize;
  add(f.found, "/dev/shm has " + std::to_string(free >> 20) + " MiB free");
  if (free >= kBytesMin) return;
  f.state = State::note;
  add(f.mend,
      "nccl.kernel_channel is left out below 128 MiB: make /dev/shm larger (docker run "
      "--shm-size=1g)");
}

}  // namespace

Finding examine_nccl() {
  const std::string own = registry::library_folder() + "/ringmain/libnccl-profiler-ringmain.so";
  std::error_code error;
  if (!std::filesystem::exists(own, error)) {
    return {"NCCL", State::problem, "there is no " + own, "install ringmain again"};
  }
  Finding f{"NCCL", State::good, "a plugin for NCCL 2.27 and later at " + own, ""};
  look_for_library(f);
  look_at_place(own, f);
  look_at_memory(f);
  return f;
}

}  // namespace ringmain::cli
