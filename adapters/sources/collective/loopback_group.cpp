// How do ranks meet, and what decides a meeting? The last to come, a fault, a time-out, an abort,
// or a rank that leaves: once, and for all of them.
#include <algorithm>
#include <exception>
#include <utility>

#include "adapters/sources/collective/loopback_core.hpp"

namespace ringmain::collective::loopback::detail {
namespace {

// Made when the library is loaded: nobody must need memory for them.
const std::string no_words, out_of_memory = "out of memory";

/// "rank 1", "ranks 1, 3"
std::string ranks_text(const std::vector<std::int32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace

std::string text_of(nanoseconds limit) {
  const std::int64_t ns = limit.count();
  if (ns % 1'000'000 == 0) return std::to_string(ns / 1'000'000) + " ms";
  return std::to_string(ns) + " ns";
}

Group::Group(std::string called, std::int32_t ranks)
    : name(std::move(called)),
      size(ranks),
      collectives_(static_cast<std::size_t>(ranks)),
      gone_(static_cast<std::size_t>(ranks)) {}

const std::string& Ending::reason() const noexcept {
  return why != nullptr ? *why : no_words;
}
Ending failed_as(How how, std::string reason) {
  return {false, how, std::make_shared<const std::string>(std::move(reason))};
}
Ending failed_wordless(How how) noexcept {
  return {false, how, {std::shared_ptr<void>(), &out_of_memory}};  // it owns nothing
}

Place Group::next_collective(std::int32_t rank) {
  const std::lock_guard lock(mutex);
  const auto at = static_cast<std::size_t>(rank);
  const Key key{kNoRank, kNoRank, collectives_[at] + 1};
  make(key);
  ++collectives_[at];
  return {key, at};
}

Place Group::next_one_to_one(bool sends, std::int32_t rank, std::int32_t peer) {
  const std::lock_guard lock(mutex);
  const std::int32_t from = sends ? rank : peer, to = sends ? peer : rank;
  std::uint64_t& count = one_to_one_[{sends, from, to}];
  const Key key{from, to, count + 1};
  make(key);
  ++count;
  return {key, sends ? 0u : 1u};
}

void Group::make(const Key& key) {
  if (over_for(key) || meetings_.contains(key)) return;
  const std::size_t places = key.one_to_one() ? 2 : static_cast<std::size_t>(size);
  Meeting made;
  made.here.resize(places);
  made.accounted.resize(places);
  meetings_.emplace(key, std::move(made));
}

void Group::come(const Place& place, Come come) noexcept {
  std::unique_lock lock(mutex);
  Pending& pending = *come.pending;
  const auto over = pending.failure ? pending.failure : over_for(place.key);
  const auto found = meetings_.find(place.key);
  if (found == meetings_.end()) {  // it was over when this place was taken
    part_over(pending, over.value_or(failed_wordless(How::error)));
    changed.notify_all();
    return;
  }
  Meeting& meeting = found->second;
  meeting.accounted[place.at] = true;
  if (meeting.state == Meeting::State::decided) {
    part_over(pending, meeting.ending);
    forget_if_accounted(found);
    changed.notify_all();
    return;
  }
  meeting.here[place.at] = std::move(come);
  if (over) return decide(place.key, *over);
  for (const auto& one : meeting.here) {
    if (!one) return;  // the last to come goes on from here
  }
  meeting.state = Meeting::State::moving;
  lock.unlock();
  const Ending ending = hold(place.key, meeting.here);
  lock.lock();
  decide(place.key, ending);
}

void Group::refuse(const Place& place, std::string_view why) noexcept {
  const std::lock_guard lock(mutex);
  const auto found = meetings_.find(place.key);
  if (found == meetings_.end()) return;
  Meeting& meeting = found->second;
  meeting.accounted[place.at] = true;
  const std::int32_t rank = !place.key.one_to_one() ? static_cast<std::int32_t>(place.at)
                            : place.at == 0         ? place.key.from
                                                    : place.key.to;
  try {
    meeting.refused +=
        "; a hook of rank " + std::to_string(rank) + " has refused it: " + std::string(why);
  } catch (const std::bad_alloc&) {
    // A time-out says less then.
  }
  forget_if_accounted(found);
}

void Group::fail(const Place& place, const Ending& ending) noexcept {
  const std::lock_guard lock(mutex);
  const auto found = meetings_.find(place.key);
  if (found == meetings_.end()) return;
  found->second.accounted[place.at] = true;
  if (found->second.state == Meeting::State::gathering) return decide(place.key, ending);
  if (found->second.state == Meeting::State::decided) forget_if_accounted(found);
}

void Group::decide(const Key& key, const Ending& ending) noexcept {
  const auto found = meetings_.find(key);
  Meeting& meeting = found->second;
  meeting.state = Meeting::State::decided;
  meeting.ending = ending;
  for (auto& one : std::exchange(meeting.here, {})) {
    if (one) part_over(*one->pending, ending);
  }
  forget_if_accounted(found);
  changed.notify_all();
}

void Group::part_over(Pending& pending, const Ending& ending) noexcept {
  --pending.left;
  if (!ending.completed && !pending.failure) {
    pending.failure = ending;
    // The other parts of a batch: it is not over before they are.
    for (const Place& place : pending.places) {
      const auto found = meetings_.find(place.key);
      if (found == meetings_.end() || found->second.state != Meeting::State::gathering) continue;
      const auto& mine = found->second.here[place.at];
      if (mine && mine->pending.get() == &pending) decide(place.key, ending);
    }
  }
  if (pending.left == 0) pending.ending = pending.failure.value_or(Ending{});
}

void Group::forget_if_accounted(Meetings::iterator at) noexcept {
  const Meeting& meeting = at->second;
  const bool all = std::find(meeting.accounted.begin(), meeting.accounted.end(), false) ==
                   meeting.accounted.end();
  const bool empty = std::none_of(meeting.here.begin(), meeting.here.end(),
                                  [](const auto& one) { return one.has_value(); });
  if (all && empty) meetings_.erase(at);
}

Ending Group::left(std::int32_t rank) const noexcept {
  return failed_if_told(How::error, [&] {
    return "rank " + std::to_string(rank) + " has left group '" + name + "'";
  });
}

std::optional<Ending> Group::over_for(const Key& key) const noexcept {
  if (aborted_) return aborted_;
  for (std::int32_t rank = 0; rank < size; ++rank) {
    const bool needed = !key.one_to_one() || key.from == rank || key.to == rank;
    if (needed && gone_[static_cast<std::size_t>(rank)]) return left(rank);
  }
  return std::nullopt;
}

std::optional<Ending> Group::unreachable(std::int32_t rank) const noexcept {
  if (aborted_) return aborted_;
  if (gone_[static_cast<std::size_t>(rank)]) return left(rank);
  return std::nullopt;
}

template <class Is>
void Group::decide_all(const Is& is, const Ending& ending) noexcept {
  for (auto at = meetings_.begin(); at != meetings_.end();) {
    const Key key = at->first;
    if (at->second.state == Meeting::State::gathering && is(key)) {
      decide(key, ending);
      at = meetings_.upper_bound(key);  // others may have gone with it, as parts of a batch
    } else {
      ++at;
    }
  }
  changed.notify_all();
}

void Group::abort(std::string_view why) noexcept {
  const std::lock_guard lock(mutex);
  if (aborted_) return;
  aborted_ = failed_if_told(
      How::aborted, [&] { return "group '" + name + "' was given up: " + std::string(why); });
  decide_all([](const Key&) { return true; }, *aborted_);
}

void Group::leave(std::int32_t rank) noexcept {
  const std::lock_guard lock(mutex);
  if (gone_[static_cast<std::size_t>(rank)]) return;
  gone_[static_cast<std::size_t>(rank)] = true;
  decide_all(
      [&](const Key& key) { return !key.one_to_one() || key.from == rank || key.to == rank; },
      left(rank));
}

std::string Group::missing_from(const Key& key, const Meeting& meeting) const {
  std::vector<std::int32_t> missing;
  for (std::size_t at = 0; at < meeting.accounted.size(); ++at) {
    if (meeting.accounted[at]) continue;
    missing.push_back(!key.one_to_one() ? static_cast<std::int32_t>(at)
                      : at == 0         ? key.from
                                        : key.to);
  }
  if (missing.empty()) return "not all ranks have come";
  return ranks_text(missing) + (missing.size() == 1 ? " has" : " have") + " not come";
}

bool Group::time_out(const std::shared_ptr<Pending>& pending) noexcept {
  for (const Place& place : pending->places) {
    const auto found = meetings_.find(place.key);
    if (found == meetings_.end()) continue;
    const Meeting& meeting = found->second;
    if (meeting.state != Meeting::State::gathering) continue;
    const auto& mine = meeting.here[place.at];
    if (!mine || mine->pending != pending) continue;
    decide(place.key, failed_if_told(How::timed_out, [&] {
             return pending->what + ": " + missing_from(place.key, meeting) + " within " +
                    text_of(pending->limit) + meeting.refused;
           }));
    break;  // what else it has come to went with it
  }
  return pending->ending.has_value();
}

void Group::await(std::unique_lock<std::mutex>& lock,
                  const std::shared_ptr<Pending>& pending) noexcept {
  while (!pending->ending) {
    if (!pending->deadline) {
      changed.wait(lock);
    } else if (changed.wait_until(lock, *pending->deadline) == std::cv_status::timeout &&
               !pending->ending && !time_out(pending)) {
      pending->deadline.reset();  // its data is moving, and that has an end
    }
  }
}

Ending Group::await_signal(std::unique_lock<std::mutex>& lock, std::int32_t from, nanoseconds limit,
                           std::uint64_t& count) {
  const auto deadline = after(limit);
  while (count == 0) {
    if (auto why = unreachable(from)) return *why;
    if (limit <= nanoseconds::zero()) {
      changed.wait(lock);
    } else if (changed.wait_until(lock, deadline) == std::cv_status::timeout && count == 0) {
      return failed_as(How::timed_out, "rank " + std::to_string(from) +
                                           " has not signalled within " + text_of(limit));
    }
  }
  --count;
  return {};
}

Ending Group::hold(const Key& key, All all) const noexcept try {
  std::vector<const Plan*> plans;
  for (const auto& one : all) {
    plans.push_back(&one->plan);
    if (!one->pending->begun.exchange(true)) (void)one->pending->operation.started();
  }
  const OpName op = plans[0]->op;
  if (const auto fault = fault_between(plans); !fault.empty()) {
    std::string what = "group '" + name + "': " + fault;
    const bool one_op =
        std::all_of(plans.begin(), plans.end(), [op](const Plan* plan) { return plan->op == op; });
    if (key.one_to_one()) {
      what = "send from rank " + std::to_string(key.from) + " to rank " + std::to_string(key.to) +
             " of " + what;
    } else if (one_op) {
      what = std::string(to_string(op)) + " of " + what;
    }
    return failed_as(How::error, std::move(what));
  }
  if (op == OpName::split) {
    split(all);
  } else if (op == OpName::new_window) {
    make_window(all);
  } else {
    move_data(plans);
  }
  return {};
} catch (const std::exception&) {
  return failed_wordless(How::error);
}

void Group::split(All all) const {
  std::map<std::vector<int>, std::shared_ptr<Group>> parts;
  for (const auto& one : all) {
    const Plan& plan = one->plan;
    if (plan.members.empty()) continue;
    auto& part = parts[plan.members];
    if (part == nullptr)
      part =
          std::make_shared<Group>(plan.part_name, static_cast<std::int32_t>(plan.members.size()));
    one->pending->part = part;
  }
}

void Group::make_window(All all) const {
  const auto window = std::make_shared<WindowState>();
  window->closed.resize(all.size());
  window->signals.assign(all.size(), std::vector<std::uint64_t>(all.size()));
  for (const auto& one : all) {
    window->memory.push_back(one->plan.window);
    if (one->plan.element_bytes != 0) window->element_bytes = one->plan.element_bytes;
    window->dtype = one->plan.dtype;
  }
  for (const auto& one : all) one->pending->window = window;
}

}  // namespace ringmain::collective::loopback::detail
