#include "adapters/sources/collective/flight_recorder_hook.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "engine/system/fork.hpp"

#include "bus/core/dump_requests.hpp"
#include "bus/core/python_stacks.hpp"
#include "bus/rank.hpp"

#include "adapters/sources/collective/communicator_core.hpp"
#include "adapters/sources/collective/flight_recorder_file.hpp"
#include "adapters/sources/collective/flight_recorder_ring.hpp"
#include "adapters/sources/collective/flight_recorder_signal.hpp"

namespace ringmain::collective {
namespace detail {
namespace {

using flight::DumpFormat;
using flight::FlightDump;
using flight::write_flight_dump;

/// Nobody would learn that a dump could not be called anything.
const FlightRecorderOptions& checked(const FlightRecorderOptions& options) {
  const char* const wants = options.dumps_on_abort         ? "dumps_on_abort"
                            : options.dumps_on_failure     ? "dumps_on_failure"
                            : options.dumps_at_exit        ? "dumps_at_exit"
                            : options.dumps_on_signal != 0 ? "dumps_on_signal"
                                                           : nullptr;
  if (wants != nullptr && options.rank < 0)
    throw std::invalid_argument(std::string(wants) +
                                " needs a rank for the file's name: give rank, from 0");
  return options;
}

std::shared_ptr<FlightRing> ring_of(const FlightRecorderOptions& options) {
  const std::size_t entries =
      options.max_entries != 0 ? options.max_entries : flight_entries(options.variables);
  if (options.isolated) return std::make_shared<FlightRing>(entries);
  static const auto& shared = *new std::shared_ptr<FlightRing>(std::make_shared<FlightRing>(0));
  shared->grow(entries);
  return shared;
}

/// Where it is to be; with a fault, why it is not there. Allocates nothing.
struct DumpFile {
  FlightPath path;
  FlightFault fault;

  DumpFile(const FlightRecorderOptions& options, std::int64_t rank) noexcept {
    if (rank < 0) {
      fault += "a dump's file is called after its rank: give one from 0";
    } else {
      flight_path(options.variables, rank, path, fault);
    }
  }
  void write(FlightRing& ring, const FlightRecorderOptions& options, std::int64_t rank,
             bool include_completed, const std::string& process) noexcept {
    if (!fault.empty()) return;
    {
      const std::lock_guard lock(ring.writes_file);
      const auto copy = ring.copy_for_file();
      const FlightDump how{DumpFormat::pickle, options.backend, rank, include_completed};
      const auto all = [&](flight::ByteSink& to) { write_flight_dump(*copy, how, to, copy->memo); };
      write_flight_file(path, std::cref(all), fault);
    }
    // After the dump, which needs no look at frames that other threads change.
    if (fault.empty()) write_stacks_beside(path, rank, process.c_str());
  }
};

}  // namespace

/// What hangs on communicators, and what hooks need when they are called. They share it.
struct FlightHooks {
  FlightHooks(FlightRecorderOptions how, std::shared_ptr<FlightRing> into)
      : options(std::move(how)), ring(std::move(into)) {}

  /// Where it cannot be written nobody waits for the reason: it is kept. Allocates nothing.
  void dump() noexcept {
    if (::getpid() != process) return;
    DumpFile file(options, options.rank);
    file.write(*ring, options, options.rank, true, in_words);
    const std::lock_guard lock(complaint_mutex);
    complaint.clear();
    complaint += file.fault.view();
  }
  void ended(const CompletionHookArgs& args) noexcept {
    ring->ended(args);
    if (!options.dumps_on_failure || args.failed == nullptr) return;
    const How how = args.failed->how;
    const bool hangs = how == How::error || how == How::timed_out || how == How::aborted;
    if (hangs && !failed.exchange(true)) dump();
  }

  /// The recorder's, else the launcher's, else that of the largest group.
  [[nodiscard]] std::int64_t rank_here() const {
    if (options.rank >= 0) return options.rank;
    return of_job.launcher != "none" ? std::int64_t{of_job.rank} : ring->rank_in_the_world();
  }
  [[nodiscard]] bool hangs_on_one() {
    const std::lock_guard lock(mutex);
    return !comms.empty();
  }

  /// For who asks the whole process.
  void dump_on_request(std::vector<ringmain::detail::Dumped>& written) {
    if (::getpid() != process) return;
    if (!hangs_on_one()) {
      written.push_back({"",
                         "its FlightRecorderHook hangs on no communicator; call "
                         "register_with_comm() for one",
                         true});
      return;
    }
    const std::int64_t rank = rank_here();
    DumpFile file(options, rank);
    const bool is_there = std::any_of(written.begin(), written.end(), [&](const auto& one) {
      return one.path == file.path.view() && one.fault.empty();
    });
    if (is_there && file.fault.empty() && !options.isolated) return;  // they share a ring
    file.write(*ring, options, rank, true, in_words);
    written.push_back({std::string(file.path.view()), std::string(file.fault.view())});
  }

  const FlightRecorderOptions options;
  const std::shared_ptr<FlightRing> ring;
  const pid_t process = ::getpid();
  const RankIdentity of_job = read_rank_identity();
  const std::string in_words = ringmain::detail::process_in_words();  // above its stacks
  ringmain::detail::DumpRequest on_request;
  std::atomic<std::uint64_t> lost{0};
  std::atomic<bool> failed{false};

  struct OnComm {
    std::weak_ptr<CommunicatorGate> comm;  // it does not keep it
    std::vector<Hook> hooks;
  };
  struct OnBus {
    std::shared_ptr<Ledger> ledger;
    Subscription starts;
  };
  std::mutex mutex;
  std::vector<OnComm> comms;
  std::vector<OnBus> buses;
  engine::ForkMutex complaint_mutex{engine::kForkFlight};  // taken inside of hooks
  FlightFault complaint;
};

namespace {

/// Those that are to be dumped when the process ends.
struct AtExit {
  engine::ForkMutex mutex{engine::kForkFlight};
  std::vector<std::weak_ptr<FlightHooks>> all;

  [[nodiscard]] std::shared_ptr<FlightHooks> get(std::size_t at) noexcept {
    const std::lock_guard lock(mutex);
    return at < all.size() ? all[at].lock() : nullptr;
  }
  [[nodiscard]] std::size_t size() noexcept {
    const std::lock_guard lock(mutex);
    return all.size();
  }
};
AtExit& at_exit() {
  static AtExit& all = *new AtExit;
  return all;
}

void dump_at_exit(const std::shared_ptr<FlightHooks>& hooks) {
  AtExit& exit = at_exit();
  static const int registered = std::atexit([] {
    for (std::size_t i = 0; i < at_exit().size(); ++i) {
      if (const auto held = at_exit().get(i)) held->dump();
    }
  });
  (void)registered;
  const std::lock_guard lock(exit.mutex);
  std::erase_if(exit.all, [](const auto& one) { return one.expired(); });
  exit.all.push_back(hooks);
}

std::shared_ptr<const void> on_signal(const FlightRecorderOptions& options,
                                      const std::shared_ptr<FlightHooks>& hooks) {
  if (options.dumps_on_signal == 0) return nullptr;
  return std::make_shared<OnSignal>(options.dumps_on_signal, [hooks] { hooks->dump(); });
}

/// A hook that has no memory left counts the operation, and refuses nothing.
Verdict record(FlightHooks& hooks, const PreHookArgs& args, const CommunicatorCore& comm) noexcept {
  try {
    hooks.ring->issued(args, comm);
  } catch (const std::bad_alloc&) {
    hooks.lost.fetch_add(1);
  }
  return Verdict::allow();
}

}  // namespace
}  // namespace detail

FlightRecorderHook::FlightRecorderHook(const FlightRecorderOptions& options)
    : options_(detail::checked(options)),
      ring_(detail::ring_of(options)),
      hooks_(std::make_shared<detail::FlightHooks>(options, ring_)),
      on_signal_(detail::on_signal(options, hooks_)) {
  ringmain::detail::find_python();  // now: a dump must not wait for the loader's lock
  if (options.dumps_at_exit) detail::dump_at_exit(hooks_);
  hooks_->on_request = ringmain::detail::DumpRequest(
      [held = std::weak_ptr(hooks_)](std::vector<ringmain::detail::Dumped>& written) {
        if (const auto hooks = held.lock()) hooks->dump_on_request(written);
      });
}

FlightRecorderHook::~FlightRecorderHook() {
  unregister();
}

Result<bool> FlightRecorderHook::register_with_comm(const Communicator& comm) {
  const std::lock_guard lock(hooks_->mutex);
  auto& comms = hooks_->comms;
  std::erase_if(comms, [](const auto& one) { return one.comm.expired(); });
  const bool known = std::any_of(comms.begin(), comms.end(), [&comm](const auto& one) {
    return one.comm.lock() == comm.gate_;
  });
  if (known) return false;
  // The last that is asked: what another hook refuses was never called for.
  const HookOptions last{std::numeric_limits<int>::min(), "flight recorder"};
  const auto hooks = hooks_;
  std::vector<Hook> made;
  // The end first: an operation that is recorded has somebody who hears its end.
  auto end =
      comm.completion_hook([hooks](const CompletionHookArgs& args) { hooks->ended(args); }, last);
  if (!end) return end.error();
  made.push_back(std::move(end).value());
  auto pre = comm.pre_hook(
      [hooks](const PreHookArgs& args) {
        return detail::record(*hooks, args, *args.communicator->core());
      },
      last);
  if (!pre) return pre.error();
  made.push_back(std::move(pre).value());
  if (options_.dumps_on_abort) {
    auto abort = comm.abort_hook([hooks](const AbortHookArgs&) { hooks->dump(); }, last);
    if (!abort) return abort.error();
    made.push_back(std::move(abort).value());
  }
  const auto& ledger = comm.core()->ledger_;
  auto& buses = hooks_->buses;
  const bool heard = std::any_of(buses.begin(), buses.end(),
                                 [&ledger](const auto& one) { return one.ledger == ledger; });
  if (!heard) {
    auto starts = comm.core()->ledger().channel<Started>().subscribe_inline(
        [ring = ring_](const Started& said) { ring->started(said.op_id); },
        {.name = "flight recorder"});
    buses.push_back({ledger, std::move(starts)});
  }
  ring_->add_group(*comm.core());
  comms.push_back({comm.gate_, std::move(made)});
  return true;
}

void FlightRecorderHook::unregister() noexcept {
  std::vector<detail::FlightHooks::OnComm> comms;
  std::vector<detail::FlightHooks::OnBus> buses;
  {
    const std::lock_guard lock(hooks_->mutex);
    comms.swap(hooks_->comms);
    buses.swap(hooks_->buses);
  }
  // Here, where no lock is held: a hook that is being called is waited for.
}

std::string FlightRecorderHook::dump_json(bool include_completed) const {
  return detail::write_flight_dump(*ring_->copy(), {detail::DumpFormat::json, options_.backend,
                                                    options_.rank, include_completed});
}
std::string FlightRecorderHook::dump_pickle(bool include_completed) const {
  return detail::write_flight_dump(*ring_->copy(), {detail::DumpFormat::pickle, options_.backend,
                                                    options_.rank, include_completed});
}
Result<std::string> FlightRecorderHook::dump_file(std::int64_t rank, bool include_completed) const {
  detail::DumpFile file(options_, rank);
  if (!file.fault.empty()) return Error{Error::Code::refused, std::string(file.fault.view())};
  const auto write = [&]() -> Result<std::string> {
    file.write(*ring_, options_, rank, include_completed, hooks_->in_words);
    if (file.fault.empty()) return std::string(file.path.view());
    return Error{Error::Code::system, std::string(file.fault.view())};
  };
  std::optional<detail::FlightRing::File> key;
  try {
    key.emplace(file.path.view(), options_.backend, include_completed);
  } catch (const std::bad_alloc&) {
    return write();  // there is no memory to ask who else writes it
  }
  return ring_->files.run(std::move(*key), write);
}

std::function<void()> FlightRecorderHook::dumper() const {
  return [hooks = hooks_] { hooks->dump(); };
}

void FlightRecorderHook::reset() noexcept {
  ring_->reset();
}
bool FlightRecorderHook::is_enabled() const noexcept {
  return ring_->enabled();
}
std::size_t FlightRecorderHook::size() const noexcept {
  return ring_->size();
}
std::uint64_t FlightRecorderHook::lost() const noexcept {
  return hooks_->lost.load();
}
std::string FlightRecorderHook::complaint() const {
  const std::lock_guard lock(hooks_->complaint_mutex);
  return std::string(hooks_->complaint.view());
}

}  // namespace ringmain::collective
