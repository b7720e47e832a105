// How is a group given up? All abort hooks at once, each in a thread of its own, so that one that
// is stuck holds up neither the others nor the abort.
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "engine/system/clock.hpp"
#include "engine/system/configure_thread.hpp"

#include "bus/origin.hpp"

#include "adapters/launch/tid.hpp"
#include "adapters/sources/collective/communicator_core.hpp"

namespace ringmain::collective {
namespace detail {
namespace {

/// While it lives, its thread aborts that communicator, or runs a hook of its abort: waiting for
/// that abort would be waiting for oneself.
class Aborting {
 public:
  explicit Aborting(const CommunicatorCore* of) noexcept
      : of_(of), outer_(std::exchange(innermost, this)) {}
  Aborting(const Aborting&) = delete;
  Aborting& operator=(const Aborting&) = delete;
  ~Aborting() { innermost = outer_; }
  [[nodiscard]] static bool is_under_way(const CommunicatorCore* of) noexcept {
    const Aborting* one = innermost;
    while (one != nullptr && one->of_ != of) one = one->outer_;
    return one != nullptr;
  }

 private:
  static constinit thread_local const Aborting* innermost;
  const CommunicatorCore* of_;
  const Aborting* outer_;
};
constinit thread_local const Aborting* Aborting::innermost = nullptr;

std::chrono::steady_clock::time_point after(nanoseconds within) noexcept {
  using Time = std::chrono::steady_clock::time_point;
  const Time now = std::chrono::steady_clock::now();
  return within < Time::max() - now ? now + within : Time::max();
}

void call_one(const CommunicatorCore* comm, AbortRow& hook, const AbortHookArgs& args,
              Incident& incident, std::size_t at) noexcept {
  {
    const Aborting mine(comm);
    (void)hook.row.call(args);  // what it throws the bus counts
  }
  const std::lock_guard lock(incident.mutex);
  incident.ended[at] = true;
  --incident.running;
  incident.changed.notify_all();
}

}  // namespace

std::vector<std::shared_ptr<AbortRow>> CommunicatorCore::rows_to_abort() {
  std::vector<std::shared_ptr<AbortRow>> all;
  const std::lock_guard lock(hooks_mutex);
  for (const auto& one : abort_rows) {
    if (auto held = one.lock(); held != nullptr && held->row.any()) all.push_back(std::move(held));
  }
  return all;
}

void CommunicatorCore::call_abort_hooks(const std::vector<std::shared_ptr<AbortRow>>& rows,
                                        const AbortHookArgs& args,
                                        const std::shared_ptr<Incident>& incident,
                                        nanoseconds within, std::vector<Name>& stuck) noexcept {
  const auto deadline = after(within);
  std::size_t alone = rows.size();
  {
    const engine::BlockedSignals signals_are_the_programs;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      try {
        // The thread may outlive this call and the communicator: it holds what it needs.
        std::thread([comm = engine::Ref<CommunicatorCore>(this), hook = rows[i], args, incident,
                     i] {
          call_one(comm.get(), *hook, args, *incident, i);
        }).detach();
      } catch (const std::exception&) {  // no thread, or no memory for one
        alone = i;
        break;
      }
    }
  }
  for (; alone < rows.size(); ++alone) call_one(this, *rows[alone], args, *incident, alone);
  std::unique_lock lock(incident->mutex);
  (void)incident->changed.wait_until(lock, deadline, [&] { return incident->running == 0; });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!incident->ended[i]) stuck.push_back(rows[i]->name);
  }
}

Aborted CommunicatorCore::abort(std::string_view reason, std::string_view asked_by,
                                nanoseconds within, bool gives_up) {
  Aborted result;
  if (forked()) return result.how = Aborted::How::ended, result;
  // All memory first: what is begun is brought to its end.
  auto rows = rows_to_abort();
  std::vector<std::shared_ptr<AbortRow>> told;  // their hooks: no lock is held when they end
  result.stuck.reserve(rows.size());
  const auto incident = std::make_shared<Incident>();
  incident->ended.assign(rows.size(), false);
  incident->running = rows.size();
  {
    std::unique_lock lock(abort_mutex_);
    while (aborting_ != nullptr) {
      const auto first = aborting_;
      const bool mine = Aborting::is_under_way(this);
      if (!mine) abort_changed_.wait(lock, [&] { return first->over; });
      if (mine || !gives_up || first->gives_up) return result.how = Aborted::How::joined, result;
      // Only the hooks were called, and the group is to be given up.
      if (told.empty()) told.swap(rows);
      incident->running = 0;
    }
    if (is_over()) return result.how = Aborted::How::ended, result;
    if (gives_up && give_up == nullptr) return result.how = Aborted::How::unsupported, result;
    incident->gives_up = gives_up;
    aborting_ = incident;
  }
  const Aborting mine(this);
  const std::int64_t began = engine::now_ns();
  Abort said;
  said.incident = result.incident = new_op_id();
  said.group = name;
  said.asked_by = Name(asked_by);
  said.reason = Name(reason);
  said.source = source;
  said.rank = rank;
  said.thread = static_cast<std::int32_t>(run::this_tid());
  if (gives_up) (void)is_over_by(kAborted);
  reports().say(said);

  result.hooks = static_cast<std::uint32_t>(rows.size());
  call_abort_hooks(rows, {result.incident, said.reason, said.asked_by}, incident, within,
                   result.stuck);
  {
    const std::lock_guard lock(abort_mutex_);
    incident->over = true;
    if (!gives_up) aborting_.reset();
    abort_changed_.notify_all();
  }
  if (gives_up) {
    result.operations = ledger().end_communicator(number, How::aborted, said.reason);
    try {
      give_up(said.reason);
    } catch (...) {
      // It is over for us either way; who asked has its answer.
    }
    const std::lock_guard lock(abort_mutex_);
    aborting_.reset();
  }
  said.duration_ns = engine::now_ns() - began;
  said.hooks = result.hooks;
  said.stuck = static_cast<std::uint32_t>(result.stuck.size());
  said.operations = result.operations;
  said.edge = Edge::end;
  reports().say(said);
  return result;
}

}  // namespace detail

Aborted Communicator::abort(std::string_view reason, std::string_view asked_by,
                            nanoseconds hooks_within) const {
  if (core() == nullptr) return {.how = Aborted::How::ended};
  return core()->abort(reason, asked_by, hooks_within, true);
}
std::uint32_t Communicator::fail_open(std::string_view reason, How how) const noexcept {
  if (core() == nullptr || core()->forked()) return 0;
  return core()->ledger().end_communicator(core()->number, how, Name(reason));
}
Aborted Communicator::run_abort_hooks(std::string_view reason, std::string_view asked_by,
                                      nanoseconds hooks_within) const {
  if (core() == nullptr) return {.how = Aborted::How::ended};
  return core()->abort(reason, asked_by, hooks_within, false);
}

}  // namespace ringmain::collective
