#include "adapters/sources/collective/flight_recorder_signal.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <semaphore.h>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "engine/system/configure_thread.hpp"
#include "engine/system/workers_options.hpp"

namespace ringmain::collective::detail {
namespace {

using Action = struct sigaction;

/// What the program had for a signal. Never freed: a handler may be at it in any thread.
struct Before {
  explicit Before(const Action& had) noexcept : action(had) {}
  const Action action;
  std::atomic<bool> spent{false};  // it was to be called once only (SA_RESETHAND)
  Before* older = nullptr;         // of the same place, with the lock
};

/// One installed handler. The program's own may lie above it and call it for ever, so it is taken
/// for another use only if it was on top at its end.
struct Place {
  std::atomic<Before*> before{nullptr};
  std::atomic<pid_t> wanted_in{0};  // the process in which somebody wants it; 0: nobody
  std::atomic<std::uint32_t> came{0};
  std::uint32_t told = 0;  // with the lock, as the number
  int number = 0;          // 0: it is free
  Before* newest = nullptr;
};
enum : std::size_t { kPlaces = 8 };
constinit std::array<Place, kPlaces> places;
constinit sem_t wake{};

bool is_function(const Action& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

/// Async-signal-safe, but for what the program's own does.
void arrived(Place& place, int number, siginfo_t* info, void* context) noexcept {
  const int kept = errno;
  if (place.wanted_in.load() == ::getpid()) {  // not in a child that shares this memory
    place.came.fetch_add(1);
    (void)::sem_post(&wake);
  }
  errno = kept;
  Before* const before = place.before.load();
  if (before == nullptr || !is_function(before->action)) return;
  const Action& had = before->action;
  if ((had.sa_flags & static_cast<int>(SA_RESETHAND)) != 0 && before->spent.exchange(true)) return;
  if ((had.sa_flags & SA_SIGINFO) != 0) {
    had.sa_sigaction(number, info, context);
  } else {
    had.sa_handler(number);
  }
}

using Handler = void (*)(int, siginfo_t*, void*);
template <std::size_t I>
void handle(int number, siginfo_t* info, void* context) {
  arrived(places[I], number, info, context);
}
constexpr std::array<Handler, kPlaces> handlers = {&handle<0>, &handle<1>, &handle<2>, &handle<3>,
                                                   &handle<4>, &handle<5>, &handle<6>, &handle<7>};

Action current(int number) noexcept {
  Action now{};
  (void)::sigaction(number, nullptr, &now);
  return now;
}

/// Ours; kPlaces: it is the program's.
std::size_t place_of(const Action& action) noexcept {
  std::size_t at = 0;
  while (at < kPlaces &&
         ((action.sa_flags & SA_SIGINFO) == 0 || action.sa_sigaction != handlers[at]))
    ++at;
  return at;
}

bool same(const Action& a, const Action& b) noexcept {
  if (a.sa_flags != b.sa_flags || a.sa_sigaction != b.sa_sigaction) return false;
  int number = 1;  // behind the last one the C library leaves what was there
  while (number <= SIGRTMAX && sigismember(&a.sa_mask, number) == sigismember(&b.sa_mask, number))
    ++number;
  return number > SIGRTMAX;
}

/// Throws std::bad_alloc. What was remembered before stays, as a handler may be at it, and is taken
/// again for the same action: beginning and ending in turn takes no memory.
void remember(Place& place, const Action& had) {
  Before* found = place.newest;
  while (found != nullptr && !same(found->action, had)) found = found->older;
  if (found == nullptr) {
    found = new Before(had);
    found->older = std::exchange(place.newest, found);
  }
  found->spent.store(false);
  place.before.store(found);
}

/// Calls that the program's handler restarts, or does not, and where it runs, are as before.
Action action_of(std::size_t at, const Action& had) noexcept {
  Action mine{};
  mine.sa_sigaction = handlers[at];
  const int kept = SA_RESTART | SA_ONSTACK | SA_NODEFER | SA_NOCLDSTOP | SA_NOCLDWAIT;
  if (is_function(had)) {
    mine.sa_mask = had.sa_mask;
    mine.sa_flags = SA_SIGINFO | (had.sa_flags & kept);
  } else {
    mine.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  }
  return mine;
}

/// The program's is there again, if ours was on top. Async-signal-safe.
void give_back(Place& place) noexcept {
  place.wanted_in.store(0);
  const auto at = static_cast<std::size_t>(&place - places.data());
  if (place_of(current(place.number)) != at) return;  // it stays below another one
  const Before& before = *place.before.load();
  Action had = before.action;
  if (before.spent.load()) {
    had = {};
    had.sa_handler = SIG_DFL;
  }
  Action was{};
  if (::sigaction(place.number, &had, &was) == 0 && place_of(was) != at)
    (void)::sigaction(place.number, &was, nullptr);  // another thread was in between
  place.number = 0;
}

std::string name_of(int number) {
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 32)
  if (const char* name = ::sigabbrev_np(number)) return "SIG" + std::string(name);
#endif
#endif
  return std::to_string(number);
}

[[noreturn]] void refuse(int number, const std::string& why) {
  throw std::invalid_argument("dumps_on_signal is " + name_of(number) + ", " + why);
}

void check(int number) {
  Action now{};
  if (number < 1 || ::sigaction(number, nullptr, &now) != 0)
    refuse(number, "which is no signal that a program can handle: give SIGUSR1 or SIGUSR2");
  switch (number) {
    case SIGKILL:
    case SIGSTOP:
      refuse(number, "which no program can handle: give SIGUSR1 or SIGUSR2");
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGABRT:
    case SIGSYS:
      refuse(number, "after which a program cannot go on: give SIGUSR1 or SIGUSR2");
    case SIGCHLD:
      refuse(number, "by which programs hear of their children: give SIGUSR1 or SIGUSR2");
    case SIGUSR1:
    case SIGUSR2:
    case SIGURG:
    case SIGWINCH:
      return;
    default:
      break;
  }
  const bool is_default = (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
  if (is_default && number < SIGRTMIN) {
    refuse(number,
           "which would not end or stop the program any more: give SIGUSR1 or SIGUSR2, or set the "
           "program's own handler first");
  }
}

/// Who wants which signal. One for each process, never destroyed.
class Wants final : public engine::ForkWitness {
 public:
  static Wants& all() {
    static Wants& made = *new Wants;
    return made;
  }

  std::uint64_t add(int number, std::function<void()> call) {
    check(number);
    const std::lock_guard lock(mutex_);
    forget_parents();
    start();
    wants_.push_back(
        {++last_id_, number, std::make_shared<const std::function<void()>>(std::move(call))});
    try {
      install(number);
    } catch (...) {
      wants_.pop_back();
      throw;
    }
    return last_id_;
  }

  void remove(std::uint64_t id) noexcept {
    std::unique_lock lock(mutex_);
    std::size_t at = 0;
    while (wants_[at].id != id) ++at;
    const int number = wants_[at].number;
    const auto held = wants_[at].call;  // destroyed after the last call of it
    wants_.erase(wants_.begin() + static_cast<std::ptrdiff_t>(at));
    if (next_of(number, 0) == nullptr) {
      for (Place& place : places) {
        if (place.number == number && place.wanted_in.load() != 0) give_back(place);
      }
    }
    changed_.wait(lock, [this, id] { return calling_ != id; });
  }

  void before_fork() noexcept override { mutex_.lock(); }
  void after_fork() noexcept override { mutex_.unlock(); }
  void in_child() noexcept override {
    for (Place& place : places) {
      if (place.wanted_in.load() != 0) give_back(place);
    }
    started_ = false;
    of_parent_ = true;
    mutex_.unlock();
  }

 private:
  struct Want {
    std::uint64_t id;
    int number;
    std::shared_ptr<const std::function<void()>> call;
  };
  Wants() : ForkWitness(engine::kForkFlight) { begin_watching(); }
  ~Wants() override = default;

  [[nodiscard]] Want* next_of(int number, std::uint64_t after) noexcept {
    for (Want& want : wants_) {
      if (want.number == number && want.id > after) return &want;
    }
    return nullptr;
  }

  /// What the parent captured is never destroyed here.
  void forget_parents() {
    if (!of_parent_) return;
    engine::keep_from_before_fork(new std::vector<Want>(std::move(wants_)));
    wants_.clear();
    new (&changed_) std::condition_variable;  // threads that are not here may wait for it
    calling_ = 0;
    of_parent_ = false;
  }

  /// The thread stays: a handler may post its semaphore at any time.
  void start() {
    if (started_) return;
    if (::sem_init(&wake, 0, 0) != 0)
      throw std::system_error(errno, std::generic_category(), "no semaphore");
    const engine::BlockedSignals blocked;
    std::thread([this] { serve(); }).detach();
    started_ = true;
  }

  void install(int number) {
    const Action had = current(number);
    std::size_t at = place_of(had);
    if (at == kPlaces) {
      at = 0;
      while (at < kPlaces && places[at].number != 0) ++at;
      if (at == kPlaces)
        refuse(number,
               "and handlers that the program has set later hide 8 of ringmain's: set "
               "them before");
      remember(places[at], had);
      const Action mine = action_of(at, had);
      Action was{};
      if (::sigaction(number, &mine, &was) != 0)
        throw std::system_error(errno, std::generic_category(),
                                "no handler for " + name_of(number));
      places[at].number = number;
      if (!same(was, had) && place_of(was) == kPlaces) remember(places[at], was);
    }
    places[at].wanted_in.store(::getpid());
  }

  void serve() noexcept {
    engine::configure_thread({}, "ringmain:dump");
    for (;;) {
      while (::sem_wait(&wake) != 0) {
      }
      while (::sem_trywait(&wake) == 0) {  // all that have come by now are one
      }
      std::unique_lock lock(mutex_);
      for (Place& place : places) {
        const std::uint32_t came = place.came.load();
        if (std::exchange(place.told, came) != came) call(place.number, lock);
      }
    }
  }

  void call(int number, std::unique_lock<std::mutex>& lock) noexcept {
    std::uint64_t id = 0;
    while (const Want* const want = next_of(number, id)) {
      calling_ = id = want->id;
      const auto call = want->call;  // the want may end meanwhile, or move
      lock.unlock();
      (*call)();
      lock.lock();
      calling_ = 0;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Want> wants_;
  std::uint64_t last_id_ = 0, calling_ = 0;
  bool started_ = false, of_parent_ = false;
};

}  // namespace

OnSignal::OnSignal(int number, std::function<void()> call)
    : id_(Wants::all().add(number, std::move(call))) {}

OnSignal::~OnSignal() {
  if (!born_.forked()) Wants::all().remove(id_);
}

}  // namespace ringmain::collective::detail
