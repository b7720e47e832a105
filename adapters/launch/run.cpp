#include "adapters/launch/run.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/publish/missed.hpp"

#include "bus/core/door_core.hpp"
#include "bus/core/first_use.hpp"
#include "bus/core/python_stacks.hpp"

#include "adapters/formats/output_open.hpp"
#include "adapters/launch/files.hpp"
#include "adapters/launch/flight_mark.hpp"
#include "adapters/launch/main_thread.hpp"
#include "adapters/launch/part.hpp"
#include "adapters/launch/plan.hpp"
#include "adapters/launch/running.hpp"
#include "adapters/launch/standard_error.hpp"
#include "adapters/launch/text.hpp"
#include "adapters/launch/thread.hpp"
#include "adapters/registry.hpp"
#include "adapters/run.hpp"

namespace ringmain::run {

namespace {

constexpr auto kOpenLimit = std::chrono::seconds(5);

using registry::Spec;

std::atomic<Running*> running{nullptr};
std::atomic<bool> finished{false};

/// Set while this thread opens sources: one of them may call join().
thread_local Running* opening = nullptr;
/// Set while this thread opens a run, or waits for that: then its use of the bus is not the
/// program's.
thread_local bool opens_run = false;

/// What waits for the first use of the process's bus. Never destroyed.
struct AtUse {
  Plan plan;
  std::vector<FileAtStart> files;
  std::string started;
  pid_t pid;
};
AtUse* at_use = nullptr;

/// What the command's own process says at its end if it joined no run. Never destroyed.
struct Unused {
  std::string sentence, by_launcher;
  pid_t pid;
};
std::atomic<Unused*> unused{nullptr};

/// The main thread has ended before others: the process ends with the last thread of the program.
void main_thread_left(bool orderly) noexcept {
  const int status = the_thread.load()->await_solitude();
  finish();
  if (!orderly) ::syscall(SYS_exit_group, status);
  sigset_t none;
  ::sigemptyset(&none);
  (void)::pthread_sigmask(SIG_SETMASK, &none, nullptr);  // the program's handlers may run again
  std::exit(0);  // as the C library does after the last thread
}

/// Runs in a thread with a table of descriptors of its own, which all files that are opened here
/// and all threads that are started here share. The bus's threads have the program's table, because
/// they write to the descriptors of mailboxes.
void open_run(Plan plan) {
  start_bus();
  engine::begin_counting_missed();
  const bool standard_output =
      std::any_of(plan.sinks.begin(), plan.sinks.end(), [](const std::string& sink) {
        return sink.ends_with(":-") || sink.ends_with(":/dev/stdout");
      });
  auto* const made = new std::atomic<Running*>(nullptr);
  the_thread = &RunThread::start(
      {.open =
           [made, plan = std::move(plan)] {
             opens_run = true;
             // In a child, paths with %p are others.
             const bool looked = at_use != nullptr && at_use->pid == ::getpid();
             auto* const here =
                 new Running(plan, looked ? at_use->files : std::vector<FileAtStart>{});
             opening = here;
             here->open();
             opening = nullptr;
             opens_run = false;
             *made = here;
             running = here;
           },
       .errand = [made](RunThread::Errand errand,
                        nanoseconds limit) { made->load()->errand(errand, limit); },
       .standard_output = standard_output},
      kOpenLimit);
  watch_main_thread(&main_thread_left);
}

/// The one of this process, made at the first call; nullptr outside a run.
Running* started() {
  if (opening != nullptr) return opening;
  // Where two installations of ringmain are preloaded: to open the run loads what the other one's
  // constructor has not yet prepared, and that constructor, in this thread, comes here again.
  if (opens_run) return nullptr;
  // A child that is forked meanwhile would begin again, among locks that are never released.
  static std::atomic<pid_t> first{0};
  pid_t none = 0;
  if (!first.compare_exchange_strong(none, ::getpid()) && none != ::getpid()) return nullptr;
  static std::once_flag once;
  std::call_once(once, [] {
    opens_run = true;
    try {
      auto plan = at_use != nullptr ? at_use->plan : Plan::from_environment();
      if (at_use != nullptr && at_use->pid != ::getpid()) hold_main_thread_of_child();
      if (plan) open_run(std::move(*plan));
    } catch (const std::exception& failed) {  // no thread or no memory: it goes on unheard
      tell_unheard(failed.what());
    }
    opens_run = false;
  });
  Running* const found = running;
  return found == nullptr || found->in_child() ? nullptr : found;
}

}  // namespace

Bus* join(std::string_view source) {
  Running* const here = started();
  try {
    return here == nullptr ? nullptr : here->join(source);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::string argument_of(std::string_view source) {
  const auto plan = Plan::from_environment();
  if (!plan) return "";
  for (const std::string& one : plan->sources) {
    const Spec spec = Spec::of(one);
    if (spec.name == source) return std::string(spec.argument.value_or(""));
  }
  return "";
}

void could_not_attach(std::string_view source, std::string_view why) {
  Running* const here = started();
  try {
    if (here != nullptr) here->miss(source, why);
  } catch (const std::bad_alloc&) {
    tell_unheard("there was no memory to say why");
  }
}

void at_end(std::function<void(nanoseconds limit)> say_last) {
  if (Running* const here = started()) here->at_end(std::move(say_last));
}

void flush(nanoseconds) {
  leave_by(false);
}

void finish() {
  leave_by(true);
}

namespace {

/// As a launcher has, or a shell. One system call.
bool has_waited_for_others() noexcept {
  rusage theirs{};
  return ::getrusage(RUSAGE_CHILDREN, &theirs) == 0 && theirs.ru_maxrss > 0;
}

/// Allocates nothing: a handler of a signal may end the process, and so may a child of vfork.
void say_unused() noexcept {
  const Unused* const said = unused;
  if (said == nullptr || said->pid != ::getpid() || unused.exchange(nullptr) == nullptr) return;
  write_sentence(has_waited_for_others() ? said->by_launcher : said->sentence);
}

}  // namespace

void leave_by(bool to_finish) noexcept {
  if (to_finish) detail::leave_no_door();
  Running* const here = running;
  if (here == nullptr && to_finish) say_unused();
  if (here != nullptr && !here->in_child()) {
    // A second caller waits for the first, because the process must not end meanwhile.
    const bool over = to_finish ? finished.exchange(true) : finished.load();
    here->ask(over ? RunThread::kNothing : to_finish ? RunThread::kFinish : RunThread::kFlush);
  }
  if (to_finish) say_if_nothing_was_recorded();
}

namespace {

void start_at_use() noexcept {
  if (opens_run) return;
  const int saved = errno;
  (void)started();
  (void)detail::before_first_use(nullptr);
  errno = saved;
}

/// Until the first use, ringmain has no thread and no open file here.
void wait_for_use(const Plan& plan) {
  remember_standard_error();
  at_use = new AtUse{plan, look_at_files(plan.sinks), std::to_string(plan.started_ns), ::getpid()};
  formats::keep_run_started(at_use->started.c_str());
  for (const FileAtStart& file : at_use->files) {
    if (!file.fault.empty())
      write_sentence("ringmain: " + no_sink(read_rank_identity(), file.sink, file.fault) + "\n");
  }
  if (!detail::before_first_use(start_at_use)) start_at_use();
}

}  // namespace

void start_at_start() noexcept {
  try {
    clear_of_run();
    const auto plan = Plan::from_environment();
    // It is worth its thread where nothing uses the bus, too, if there are stacks to tell.
    if (plan && detail::has_python()) detail::open_door_of_environment();
    if (plan && plan->at_start) (void)started();
    if (plan && plan->at_use) wait_for_use(*plan);
    if (plan) expect_records(plan->flight_marks, plan->flight);
    if (plan && !plan->unused.empty() && plan->process == ::getpid()) {
      remember_standard_error();
      const std::string who = process_title(read_rank_identity());
      const std::string begin = "ringmain: " + who + ": ";
      unused = new Unused{begin + plan->unused + "\n", begin + plan->unused_by_launcher + "\n",
                          ::getpid()};
    }
  } catch (const std::exception& failed) {
    tell_unheard(failed.what());
  }
}

}  // namespace ringmain::run

extern "C" {

void* ringmain_run_join(const char* source) {
  return ringmain::run::join(source);
}
void ringmain_run_could_not_attach(const char* source, const char* why) {
  ringmain::run::could_not_attach(source, why);
}
void ringmain_run_flush(int64_t limit_ns) {
  ringmain::run::flush(ringmain::nanoseconds(limit_ns));
}

}  // extern "C"
