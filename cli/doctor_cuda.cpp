// What is there of CUDA for `ringmain run --source cuda`?
//
// CUPTI is called only where there is a driver: some of its versions die in their first call
// without one. Whether the driver has a device is asked of cuInit, which may take long, hang or
// die, and lets other tools in: in a child. What is in the file system is looked at, and not
// loaded.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "adapters/library_folder.hpp"
#include "adapters/sources/cuda/cupti_library.hpp"

#include "cli/doctor.hpp"

namespace ringmain::cli {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Entries of `folder` whose names begin so.
std::vector<fs::path> entries(const fs::path& folder, std::string_view begin) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with(begin)) found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Where toolkits and Python's packages have their libraries.
std::vector<fs::path> folders() {
  std::vector<fs::path> all;
  const std::string way = variable("LD_LIBRARY_PATH");
  for (std::string_view left = way; !left.empty();) {
    const std::string_view one = left.substr(0, left.find(':'));
    left.remove_prefix(std::min(one.size() + 1, left.size()));
    if (!one.empty()) all.emplace_back(one);
  }
  std::vector<fs::path> toolkits = entries("/usr/local", "cuda");
  for (const char* const name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string home = variable(name); !home.empty()) toolkits.emplace_back(home);
  }
  for (const fs::path& toolkit : toolkits) {
    all.push_back(toolkit / "lib64");
    all.push_back(toolkit / "extras/CUPTI/lib64");
  }
  for (const char* const name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = variable(name);
    if (prefix.empty()) continue;
    all.push_back(fs::path(prefix) / "lib");
    for (const fs::path& python : entries(fs::path(prefix) / "lib", "python3")) {
      for (const char* const package : {"cu13", "cuda_cupti"})
        all.push_back(python / "site-packages/nvidia" / package / "lib");
    }
  }
  for (const char* const place : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"})
    all.emplace_back(place);
  return all;
}

/// The files of CUPTI's libraries, each once.
std::vector<std::string> copies() {
  std::vector<std::string> found;
  for (const fs::path& folder : folders()) {
    for (const char* const name : {"libcupti.so.13", "libcupti.so.12"}) {
      std::error_code error;
      const std::string file = fs::canonical(folder / name, error).string();
      if (!error && std::find(found.begin(), found.end(), file) == found.end())
        found.push_back(file);
    }
  }
  return found;
}

std::string listed(const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files) text += (text.empty() ? "" : ", ") + file;
  return text;
}

/// "the driver is for CUDA 13.0 (completions too); ", or "" where none is loaded. To ask for that
/// starts nothing.
std::string driver() {
  constexpr int kForCompletions = 12000;  // cuStreamGetId
  void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return "";
  auto* const ask = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cuDriverGetVersion"));
  int number = 0;
  if (ask == nullptr || ask(&number) != 0) return "the driver does not say its version; ";
  return "the driver is for CUDA " + std::to_string(number / 1000) + "." +
         std::to_string(number % 1000 / 10) +
         (number >= kForCompletions ? " (completions too); " : ", completions take 12.0; ");
}

using InitFn = int(unsigned);
constexpr int kNoDevice = 100;     // CUDA_ERROR_NO_DEVICE
constexpr int kWaitMs = 20'000;    // a driver without persistence takes seconds for each device
constexpr int kDriverDied = 1000;  // above all that cuInit answers

/// Of a child that says what cuInit answers: that, or nullopt where it says nothing in time. It is
/// over when this returns.
std::optional<int> answer_of(pid_t child, int from) {
  pollfd readable{from, POLLIN, 0};
  int answer = kDriverDied;
  const bool in_time = ::poll(&readable, 1, kWaitMs) == 1;
  if (!in_time || ::read(from, &answer, sizeof answer) != sizeof answer) answer = kDriverDied;
  ::kill(child, SIGKILL);
  (void)::waitpid(child, nullptr, 0);
  return in_time ? std::optional(answer) : std::nullopt;
}

/// What cuInit answers in a child; nullopt as above, and 0 where it cannot be asked.
std::optional<int> ask_init() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  auto* const init =
      library == nullptr ? nullptr : reinterpret_cast<InitFn*>(::dlsym(library, "cuInit"));
  int ends[2];
  if (init == nullptr || ::pipe2(ends, O_CLOEXEC) != 0) return 0;
  const pid_t child = ::fork();
  if (child == 0) {
    ::unsetenv("CUDA_INJECTION64_PATH");
    const int answer = init(0);
    ::_exit(::write(ends[1], &answer, sizeof answer) == sizeof answer ? 0 : 1);
  }
  ::close(ends[1]);
  const std::optional<int> answer = child < 0 ? std::optional(0) : answer_of(child, ends[0]);
  ::close(ends[0]);
  return answer;
}

/// Whether the driver, which is loaded, starts.
void look_at_devices(Finding& f) {
  const std::optional<int> answer = ask_init();
  if (answer == 0) return;
  f.state = State::note;
  f.mend = "look at what nvidia-smi and the kernel's log (dmesg) say of it";
  if (!answer) {
    f.found = "the driver did not start within 20 s: ";
  } else if (*answer == kDriverDied) {
    f.found = "the driver died as it started: ";
  } else if (*answer != kNoDevice) {
    f.found = "the driver does not start, cuInit answers " + std::to_string(*answer) + ": ";
  } else {
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    f.found = "a driver, and no device: ";
    f.mend =
        "look whether the driver has one (nvidia-smi -L) and the container is given it "
        "(--gpus all), and at CUDA_VISIBLE_DEVICES, which is " +
        (visible == nullptr ? "not set" : "'" + std::string(visible) + "'");
  }
}

/// What another tool's variable means for a run.
void look_at_injection(Finding& f) {
  const std::string tool = variable("CUDA_INJECTION64_PATH");
  const std::string own = registry::library_folder() + "/ringmain/libringmain_cuda_inject.so";
  if (tool.empty() || tool == own) return;
  f.found += "; CUDA_INJECTION64_PATH is set to " + tool;
  f.state = State::note;
  f.mend += std::string(f.mend.empty() ? "" : "; ") +
            "ringmain run starts that tool first, and hears nothing where it takes CUPTI's only "
            "place: unset the variable for that";
}

/// In this process, so a tool that watches others is not in the way.
void try_to_subscribe(const cuda::Cupti& cupti, Finding& f) {
  std::string owner;
  const auto nothing = [](void*, cuda::abi::Domain, std::uint32_t, const void*) {};
  const auto place = cupti.subscribe(nothing, nullptr, &owner, nullptr);
  if (place) {
    (void)cupti.unsubscribe(place.value());
    f.found += ", takes a subscriber";
    return;
  }
  f.found += owner.empty() ? ", takes no subscriber" : ", in use by " + owner;
  f.state = State::note;
  f.mend = place.error().message;
}

}  // namespace

Finding examine_cuda() {
  Finding f{"CUDA", State::good, "", ""};
  std::vector<std::string> there = copies();
  if (cuda::why_no_driver().empty()) look_at_devices(f);
  const bool starts = f.state == State::good;
  const auto cupti = cuda::Cupti::open("");
  if (cupti) {
    f.found +=
        driver() + "CUPTI " + std::to_string(cupti.value()->version) + " at " + cupti.value()->path;
    if (starts) try_to_subscribe(*cupti.value(), f);
  } else {
    f.state = State::note;
    f.found += driver() + "its programs cannot be heard here";
    f.mend += (starts ? "" : "; ") + cupti.error().message;
  }
  if (cupti) {  // it is named already
    std::erase_if(there, [&](const std::string& file) {
      std::error_code error;
      return fs::equivalent(file, cupti.value()->path, error);
    });
  }
  if (!there.empty())
    f.found += (cupti ? "; libcupti is also at " : "; libcupti is at ") + listed(there);
  look_at_injection(f);
  return f;
}

}  // namespace ringmain::cli
