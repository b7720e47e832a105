// How does a hook get on a communicator and its parts, and off all of them again?
#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "engine/system/clock.hpp"

#include "adapters/sources/collective/communicator_core.hpp"

namespace ringmain::collective {
namespace detail {
namespace {

/// After a wait that took too long: nobody need come again, for the last call takes the captures.
void leave_to_its_calls(Subscription& hook) noexcept {
  const engine::CallbackScope waits_for_nobody;
  (void)hook.reset();
}
void forget(Subscription& hook) noexcept {
  const engine::CallbackScope waits_for_nobody;
  hook = {};
}

/// A pre hook that throws refuses, and its words are the reason.
Verdict verdict_of(const PreHook& see, const PreHookArgs& args) noexcept {
  try {
    return see(args);
  } catch (const std::exception& thrown) {
    return Verdict::veto(Name(thrown.what()));
  } catch (...) {
    return Verdict::veto(Name("a pre hook threw what is no std::exception"));
  }
}

class PreHookOn final : public OneHook {
 public:
  PreHookOn(PreHook see, HookOptions options)
      : OneHook(std::move(options)), see_(std::make_shared<const PreHook>(std::move(see))) {}

 private:
  Result<On> hook_in(CommunicatorCore& comm) override {
    auto row = comm.pre.get(comm.bus(), comm.row_name("pre"));
    if (!row) return row.error();
    return On{
        &comm, nullptr,
        row.value()->add([see = see_](const PreHookArgs& args) { return verdict_of(*see, args); },
                         subscribe_options())};
  }
  std::shared_ptr<const void> take_function() noexcept override { return std::move(see_); }
  std::shared_ptr<const PreHook> see_;
};

class PostHookOn final : public OneHook {
 public:
  PostHookOn(PostHook see, HookOptions options)
      : OneHook(std::move(options)), see_(std::make_shared<const PostHook>(std::move(see))) {}

 private:
  Result<On> hook_in(CommunicatorCore& comm) override {
    auto row = comm.post.get(comm.bus(), comm.row_name("post"));
    if (!row) return row.error();
    return On{&comm, nullptr,
              row.value()->add([see = see_](const PostHookArgs& args) { (*see)(args); },
                               subscribe_options())};
  }
  std::shared_ptr<const void> take_function() noexcept override { return std::move(see_); }
  std::shared_ptr<const PostHook> see_;
};

class CompletionHookOn final : public OneHook {
 public:
  CompletionHookOn(CompletionHook see, HookOptions options)
      : OneHook(std::move(options)), see_(std::make_shared<const CompletionHook>(std::move(see))) {}

 private:
  Result<On> hook_in(CommunicatorCore& comm) override {
    auto row = comm.ledger().ends.get(comm.bus(), "collective completion hooks");
    if (!row) return row.error();
    return On{&comm, nullptr,
              row.value()->add(
                  [see = see_, number = comm.number](const EndedArgs& ended) {
                    if (ended.communicator == number) (*see)(ended.args);
                  },
                  subscribe_options())};
  }
  std::shared_ptr<const void> take_function() noexcept override { return std::move(see_); }
  std::shared_ptr<const CompletionHook> see_;
};

class AbortHookOn final : public OneHook {
 public:
  AbortHookOn(AbortHook see, HookOptions options)
      : OneHook(options),
        see_(std::make_shared<const AbortHook>(std::move(see))),
        name_(options.name.empty() ? "an abort hook without a name" : options.name) {}

 private:
  Result<On> hook_in(CommunicatorCore& comm) override {
    auto row = Hooks<AbortHookArgs>::make(comm.bus(), comm.row_name("abort"));
    if (!row) return row.error();
    auto held = std::make_shared<AbortRow>(AbortRow{name_, std::move(row).value()});
    auto added = held->row.add([see = see_](const AbortHookArgs& args) { (*see)(args); },
                               subscribe_options());
    std::erase_if(comm.abort_rows, [](const auto& one) { return one.expired(); });
    comm.abort_rows.push_back(held);
    return On{&comm, std::move(held), std::move(added)};
  }
  std::shared_ptr<const void> take_function() noexcept override { return std::move(see_); }
  std::shared_ptr<const AbortHook> see_;
  Name name_;
};

template <class Made, class F>
Result<Hook> registered(CommunicatorCore* comm, F see, HookOptions options) try {
  if (comm == nullptr)
    return Error{Error::Code::refused, "an empty communicator takes no hooks; make one first"};
  if (!see) return Error{Error::Code::refused, "an empty function is no hook; give it one to call"};
  auto added = comm->add(std::make_shared<Made>(std::move(see), std::move(options)));
  if (!added) return added.error();
  return Hook(std::move(added).value());
} catch (const std::bad_alloc&) {
  return Error{Error::Code::no_memory, "out of memory"};  // short: it is not allocated
}

}  // namespace

SubscribeOptions OneHook::subscribe_options() const {
  SubscribeOptions options;
  options.priority = options_.priority;
  options.name = options_.name;
  return options;
}

Result<bool> OneHook::add_to(CommunicatorCore& comm) {
  const std::lock_guard lock(mutex_);
  if (removed_) return false;
  if (on_.size() == on_.capacity()) on_.reserve(2 * on_.size() + 1);  // the memory first
  auto added = hook_in(comm);
  if (!added) return added.error();
  on_.push_back(std::move(added).value());
  return true;
}

Detached OneHook::remove(nanoseconds limit) noexcept {
  if (forked()) return Detached::was_not_attached;
  const engine::Deadline deadline(limit.count());
  std::vector<On> leaving;
  std::shared_ptr<const void> function;  // its captures end when everybody was told
  {
    std::unique_lock lock(mutex_);
    if (being_removed_) {
      if (engine::in_callback()) return Detached::deferred;
      if (!wait_for_who_removes(lock, deadline)) return Detached::timeout;
      if (on_.empty()) return Detached::done;
    }
    removed_ = true;
    being_removed_ = true;
    leaving.swap(on_);
    function = take_function();
  }
  // No lock is held while it waits: the call that it waits for may want to remove the hook, too.
  Detached all = Detached::was_not_attached;
  for (On& one : leaving) {
    const Detached ended = one.hook.reset_for(nanoseconds(deadline.left_ns()));
    if (ended == Detached::timeout) leave_to_its_calls(one.hook);
    if (ended == Detached::timeout || (ended == Detached::deferred && all != Detached::timeout) ||
        all == Detached::was_not_attached)
      all = ended;
  }
  {
    const std::lock_guard lock(mutex_);
    being_removed_ = false;
    if (all == Detached::timeout || all == Detached::deferred) on_.swap(leaving);
  }
  was_removed_.notify_all();
  return all;
}

/// False: it took too long.
bool OneHook::wait_for_who_removes(std::unique_lock<std::mutex>& lock,
                                   const engine::Deadline& deadline) noexcept {
  const auto nobody_does = [this] { return !being_removed_; };
  const std::int64_t left = deadline.left_ns();
  if (left >= 0) return was_removed_.wait_for(lock, nanoseconds(left), nobody_does);
  was_removed_.wait(lock, nobody_does);
  return true;
}

void OneHook::leave(const CommunicatorCore& comm) noexcept {
  const auto is_its = [&](const On& one) { return one.comm == &comm; };
  for (;;) {
    On one;
    {
      const std::lock_guard lock(mutex_);
      const auto at = std::find_if(on_.begin(), on_.end(), is_its);
      if (at == on_.end()) return;
      std::swap(one, *at);
      on_.erase(at);
    }
    // Only a completion hook may be called still, by another source that says an end.
    if (one.hook.reset_for(nanoseconds::zero()) == Detached::timeout) forget(one.hook);
  }
}

bool OneHook::attached() noexcept {
  if (forked()) return false;
  const std::lock_guard lock(mutex_);
  return !removed_ && !on_.empty();
}
bool OneHook::removed() noexcept {
  const std::lock_guard lock(mutex_);
  return removed_;
}
bool OneHook::over() noexcept {
  const std::lock_guard lock(mutex_);
  return removed_ && on_.empty() && !being_removed_;
}

}  // namespace detail

Result<Hook> Communicator::pre_hook(PreHook see, HookOptions options) const {
  return detail::registered<detail::PreHookOn>(core(), std::move(see), std::move(options));
}
Result<Hook> Communicator::post_hook(PostHook see, HookOptions options) const {
  return detail::registered<detail::PostHookOn>(core(), std::move(see), std::move(options));
}
Result<Hook> Communicator::completion_hook(CompletionHook see, HookOptions options) const {
  return detail::registered<detail::CompletionHookOn>(core(), std::move(see), std::move(options));
}
Result<Hook> Communicator::abort_hook(AbortHook see, HookOptions options) const {
  return detail::registered<detail::AbortHookOn>(core(), std::move(see), std::move(options));
}

}  // namespace ringmain::collective
