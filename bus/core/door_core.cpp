#include "bus/core/door_core.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "engine/door/door_place.hpp"
#include "engine/system/fork.hpp"

#include "bus/core/door_words.hpp"
#include "bus/core/python_stacks.hpp"
#include "bus/door.hpp"

namespace ringmain::detail {
namespace {

namespace door = engine::door;

constexpr const char kVariable[] = "RINGMAIN_DOOR";

/// Never destroyed: a door answers while static objects are.
struct OfProcess {
  engine::ForkMutex mutex{engine::kForkBuses};
  std::weak_ptr<ProcessDoor> door;
  std::shared_ptr<ProcessDoor> kept;  // that the environment asked for
};
OfProcess& of_process() {
  static OfProcess& it = *new OfProcess;
  return it;
}

/// The one whose file is to be gone at the end. Its lock is only tried where a signal may have
/// interrupted its holder, or a fork have left it locked: then the file stays until the next door.
constinit std::mutex at_end_mutex;
constinit const door::Door* at_end = nullptr;

constinit std::atomic<std::uint32_t> doors{0};

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

/// However they are spelled: behind links, with `..`, with a slash more.
bool is_same_folder(const std::string& one, const std::string& other) noexcept {
  struct stat a {};
  struct stat b {};
  return one == other || (::stat(one.c_str(), &a) == 0 && ::stat(other.c_str(), &b) == 0 &&
                          S_ISDIR(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

/// A slash at its end would have a link followed.
std::string without_slashes(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

std::shared_ptr<door::Door> open_in(const std::string& folder, bool asked, std::string& complaint) {
  door::DoorOptions options;
  options.folder = folder;
  options.with_parents = asked;
  const auto words = std::make_shared<DoorWords>();
  options.server.answer = [words](std::string_view word, door::Reply& reply) {
    words->answer(word, reply);
  };
  return door::Door::open(std::move(options), complaint);
}

Result<std::shared_ptr<ProcessDoor>> open_process_door(const std::string& asked) {
  find_python();
  OfProcess& process = of_process();
  const std::lock_guard lock(process.mutex);
  if (auto there = process.door.lock(); there != nullptr && !there->door().forked()) {
    if (asked.empty() || is_same_folder(asked, folder_of(there->door().path()))) return there;
    return Error{Error::Code::conflict, "this process has a door already, " + there->door().path() +
                                            "; close that one, or name no folder"};
  }
  const DoorAsked said = read_door_variable(
      asked.empty() && ::secure_getenv(kVariable) != nullptr ? ::secure_getenv(kVariable) : "");
  const std::string folder = without_slashes(asked.empty() ? said.folder : asked);
  std::string complaints;
  for (const std::string& one : door::door_folders(folder)) {
    std::string complaint;
    if (auto made = open_in(one, !folder.empty(), complaint)) {
      auto held = std::make_shared<ProcessDoor>(std::move(made));
      process.door = held;
      return held;
    }
    if (complaints.find(complaint) == complaints.npos)
      complaints += (complaints.empty() ? "" : ", and ") + complaint;
  }
  return Error{Error::Code::system, "there is no door here: " + complaints};
}

}  // namespace

ProcessDoor::ProcessDoor(std::shared_ptr<door::Door> door) noexcept : door_(std::move(door)) {
  static const int registered = std::atexit(&leave_no_door);
  (void)registered;
  ++doors;
  if (!at_end_mutex.try_lock()) return;
  is_at_end_ = true;
  at_end = door_.get();
  at_end_mutex.unlock();
}

ProcessDoor::~ProcessDoor() {
  --doors;
  if (!is_at_end_ || door_->forked()) return;
  const std::lock_guard lock(at_end_mutex);
  if (at_end == door_.get()) at_end = nullptr;
}

bool has_door() noexcept {
  return doors.load() != 0;
}

void leave_no_door() noexcept {
  if (!at_end_mutex.try_lock()) return;
  if (at_end != nullptr) at_end->remove_file();
  at_end_mutex.unlock();
}

DoorAsked read_door_variable(std::string_view value) {
  if (value.empty() || value == "0") return {};
  if (value == "1") return {true, "", ""};
  if (value.front() == '/') return {true, std::string(value), ""};
  return {false, "",
          "'" + std::string(value) + "' is neither 1 nor a folder's whole path; give one of these"};
}

void open_door_of_environment() noexcept try {
  const char* const value = ::secure_getenv(kVariable);
  if (value == nullptr) return;
  static std::atomic<pid_t> tried{0};  // and not in its forked children, who may want their own
  if (tried.exchange(::getpid()) == ::getpid()) return;
  const DoorAsked asked = read_door_variable(value);
  std::string complaint = asked.complaint;
  if (asked.opens) {
    auto made = open_process_door("");
    if (made) {
      of_process().kept = std::move(made).value();
    } else {
      complaint = made.error().message;
    }
  }
  if (!complaint.empty()) std::fprintf(stderr, "ringmain: %s: %s\n", kVariable, complaint.c_str());
} catch (const std::exception&) {  // no memory: the program goes on without a door
}

}  // namespace ringmain::detail

namespace ringmain {

Result<Door> open_door(const DoorOptions& options) {
  auto made = detail::open_process_door(options.folder);
  if (!made) return made.error();
  return Door(std::move(made).value());
}

}  // namespace ringmain
