#include "engine/door/door.hpp"

#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstddef>
#include <dlfcn.h>
#include <exception>
#include <fcntl.h>
#include <mutex>
#include <new>
#include <pthread.h>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "engine/door/door_place.hpp"
#include "engine/system/atomics.hpp"
#include "engine/system/configure_thread.hpp"
#include "engine/system/fork.hpp"
#include "engine/system/own_descriptors.hpp"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RINGMAIN_DOOR_SHARES_TABLE 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define RINGMAIN_DOOR_SHARES_TABLE 1
#endif

namespace ringmain::engine::door {
namespace {

#ifdef RINGMAIN_DOOR_SHARES_TABLE
// ThreadSanitizer knows one table of descriptors, and takes equal numbers for one file: a build
// with it, which is for tests, keeps to that.
constexpr bool kOwnTable = false;
bool is_misunderstood() noexcept {
  return false;
}
#else
constexpr bool kOwnTable = true;
/// A program that was built with it, with a library that was not.
bool is_misunderstood() noexcept {
  return ::dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr;
}
#endif

constexpr std::size_t kStackBytes = 256u << 10;
// The first three, the folder, the socket, a peer, and what it takes to answer: a folder and a
// file.
constexpr rlim_t kDescriptorsMin = 8;
constexpr auto kCloseLimit = std::chrono::seconds(5);

/// Nothing that is printed here may land in a file.
void occupy_the_first_three() noexcept {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) return;
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    if (fd != nothing) (void)::dup3(nothing, fd, O_CLOEXEC);
  }
  if (nothing > STDERR_FILENO) (void)::close(nothing);
}

/// Has it look whether it is to end. By a connection, from a thread whose descriptors the program
/// does not see either.
bool knock(const std::string& path) noexcept try {
  bool arrived = false;
  const BlockedSignals blocked;
  std::thread([&] {
    (void)::pthread_setname_np(::pthread_self(), "ringmain:knock");
    if (kOwnTable && !take_own_descriptors(0)) return;
    const std::size_t end = path.rfind('/');
    const std::string folder = path.substr(0, end);
    const int in = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (in < 0) return;
    const int fd = connect_to(in, folder, path.substr(end + 1));
    // Where there are that many who wait at the door, it is about to look anyway.
    arrived = fd >= 0 || fd == -EAGAIN;
    if (fd >= 0) ::close(fd);
    ::close(in);
  }).join();
  return arrived;
} catch (const std::exception&) {
  return false;
}

}  // namespace

/// The thread and the handle hold it.
struct Door::Shared {
  enum class Phase { opening, open, ended };

  void run() noexcept;
  [[nodiscard]] std::string open_here();
  /// Once: a socket that another door makes afterwards may have its name, and its inode's number.
  void remove(int folder, const char* name) noexcept {
    const bool is_gone = removed.exchange(true, std::memory_order_relaxed);  // relaxed: one does it
    if (!is_gone) remove_socket(folder, name, made.device, made.inode);
  }
  void change(Phase to) noexcept {
    const std::lock_guard lock(mutex);
    phase = to;
    changed.notify_all();
  }

  Born born;
  const pid_t process = ::getpid();
  DoorOptions options;
  MadeSocket made;  // set before it is open
  std::string complaint;
  pthread_t thread{};
  std::mutex mutex;
  std::condition_variable changed;
  Phase phase = Phase::opening;
  bool ends = false;
  Atomic<bool> removed{false};
};

std::string Door::Shared::open_here() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < kDescriptorsMin) {
    return "the process may have " + std::to_string(limit.rlim_cur) +
           " descriptors only (ulimit -n), and a door needs " + std::to_string(kDescriptorsMin);
  }
  // Also what the program has open in the first three: nobody is to wait for its end.
  if (kOwnTable && !take_own_descriptors(0))
    return "the system gives a thread no table of descriptors of its own (a filter of system calls "
           "refuses close_range and unshare)";
  if (kOwnTable) occupy_the_first_three();
  made = make_socket(options.folder, options.with_parents);
  return made.complaint;
}

void Door::Shared::run() noexcept {
  (void)::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  (void)::pthread_setname_np(::pthread_self(), "ringmain:door");
  try {
    complaint = open_here();
  } catch (const std::bad_alloc&) {
    complaint.assign("no memory");
  }
  if (!complaint.empty()) return change(Phase::ended);
  change(Phase::open);
  {
    Server server(made.fd, options.server);
    server.run();
  }
  remove(made.folder, made.name.c_str());
  ::close(made.fd);
  ::close(made.folder);
  change(Phase::ended);
}

std::shared_ptr<Door> Door::open(DoorOptions options, std::string& complaint) {
  if (is_misunderstood()) {
    complaint =
        "the program was built with ThreadSanitizer, which would take the door's descriptors for "
        "the program's";
    return nullptr;
  }
  auto shared = std::make_shared<Shared>();
  shared->options = std::move(options);
  shared->options.server.ends = [at = shared.get()] {
    const std::lock_guard lock(at->mutex);
    return at->ends;
  };
  std::shared_ptr<Door> door(new Door(shared));
  auto held = std::make_unique<std::shared_ptr<Shared>>(shared);
  const auto begin = [](void* argument) -> void* {
    const std::unique_ptr<std::shared_ptr<Shared>> mine(
        static_cast<std::shared_ptr<Shared>*>(argument));
    (*mine)->thread = ::pthread_self();
    (*mine)->run();
    return nullptr;
  };
  pthread_attr_t attributes;
  (void)::pthread_attr_init(&attributes);
  (void)::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  (void)::pthread_attr_setstacksize(&attributes, kStackBytes);
  int error = 0;
  {
    const BlockedSignals blocked;  // they are the program's
    pthread_t thread{};
    error = ::pthread_create(&thread, &attributes, begin, held.get());
    if (error == EINVAL) {  // a program whose threads' own memory needs more
      (void)::pthread_attr_setstacksize(&attributes, 8u << 20);
      error = ::pthread_create(&thread, &attributes, begin, held.get());
    }
  }
  (void)::pthread_attr_destroy(&attributes);
  if (error != 0) {
    shared->phase = Shared::Phase::ended;
    complaint = "the system gives no thread for it: " + std::generic_category().message(error) +
                " (ulimit -u, or -v)";
    return nullptr;
  }
  (void)held.release();
  std::unique_lock lock(shared->mutex);
  shared->changed.wait(lock, [&] { return shared->phase != Shared::Phase::opening; });
  if (shared->complaint.empty()) return door;
  complaint = shared->complaint;
  return nullptr;
}

Door::~Door() {
  close();
  if (shared_->born.forked()) {
    // Its lock may be held by a thread that is gone, and its end would be the parent's.
    keep_from_before_fork(new (std::nothrow) std::shared_ptr<Shared>(shared_));
  }
}

const std::string& Door::path() const noexcept {
  return shared_->made.path;
}

bool Door::forked() const noexcept {
  return shared_->born.forked();
}

void Door::remove_file() const noexcept {
  if (::getpid() != shared_->process) return;
  shared_->remove(AT_FDCWD, shared_->made.path.c_str());
}

void Door::close() noexcept {
  Shared& shared = *shared_;
  if (shared.born.forked()) return;
  {
    const std::lock_guard lock(shared.mutex);
    if (shared.phase != Shared::Phase::open || std::exchange(shared.ends, true)) return;
  }
  if (::pthread_equal(shared.thread, ::pthread_self()) != 0) return;
  const bool looks = knock(shared.made.path);
  if (!looks) return remove_file();  // it sleeps on, where nobody can come
  std::unique_lock lock(shared.mutex);
  const bool ended = shared.changed.wait_for(
      lock, kCloseLimit, [&shared] { return shared.phase == Shared::Phase::ended; });
  lock.unlock();
  if (!ended) remove_file();
}

}  // namespace ringmain::engine::door
