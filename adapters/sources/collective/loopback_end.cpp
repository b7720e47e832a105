// How does one rank call for an operation, and who says its end? Whoever waits for it itself, or
// the rank's own thread.
#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include "adapters/launch/tid.hpp"
#include "adapters/sources/collective/loopback_core.hpp"

namespace ringmain::collective::loopback::detail {
namespace {

thread_local const EndSayer* here = nullptr;

void say_end(Pending& pending) {
  if (pending.ending->completed) {
    (void)pending.operation.completed();
  } else {
    (void)pending.operation.failed(failed_of(*pending.ending));
  }
  set_over(pending);
}

}  // namespace

Failed failed_of(const Ending& ending) {
  Failed what;
  what.how = ending.how;
  what.reason = Name(ending.reason());
  what.thread = static_cast<std::int32_t>(run::this_tid());
  return what;
}

void set_over(Pending& pending) {
  const std::lock_guard lock(pending.group->mutex);
  pending.over = true;
  pending.group->changed.notify_all();
}

// --- the thread of asynchronous operations ---

bool EndSayer::is_here(const EndSayer* one) noexcept {
  return one != nullptr && here == one;
}

void EndSayer::start(const std::shared_ptr<EndSayer>& self) {
  const std::lock_guard lock(self->group_->mutex);
  if (self->stopping_ || self->thread_.joinable()) return;
  self->thread_ = std::thread([self] {
    here = self.get();
    self->run();
  });
}

bool EndSayer::watch(Watched& pending) noexcept {
  const std::lock_guard lock(group_->mutex);
  if (stopping_) return false;
  pending.front()->said_by = this;
  open_.splice(open_.end(), pending);
  group_->changed.notify_all();
  return true;
}

void EndSayer::stop() {
  std::thread ending;
  {
    const std::lock_guard lock(group_->mutex);
    stopping_ = true;
    ending.swap(thread_);
    group_->changed.notify_all();
  }
  if (!ending.joinable()) return;
  if (is_here(this)) {
    ending.detach();
  } else {
    ending.join();
  }
}

std::shared_ptr<Pending> EndSayer::take_one_with_ending() {
  const auto found = std::find_if(open_.begin(), open_.end(),
                                  [](const auto& one) { return one->ending.has_value(); });
  if (found == open_.end()) return nullptr;
  auto taken = std::move(*found);
  open_.erase(found);
  return taken;
}

void EndSayer::run() {
  std::unique_lock lock(group_->mutex);
  while (!stopping_ || !open_.empty()) {
    if (auto ended = take_one_with_ending()) {
      lock.unlock();
      say_end(*ended);
      ended.reset();
      lock.lock();
    } else {
      await_next(lock);
    }
  }
}

/// Until something is decided, or the first deadline is over.
void EndSayer::await_next(std::unique_lock<std::mutex>& lock) {
  std::shared_ptr<Pending> first;
  for (const auto& one : open_) {
    if (one->deadline && (first == nullptr || *one->deadline < *first->deadline)) first = one;
  }
  if (first == nullptr) return group_->changed.wait(lock);
  if (group_->changed.wait_until(lock, *first->deadline) == std::cv_status::timeout &&
      !first->ending && !group_->time_out(first)) {
    first->deadline.reset();  // its data is moving, and that has an end
  }
}

// --- one rank's end ---

End::End(std::shared_ptr<Group> of, std::int32_t as, std::vector<int> of_world,
         std::string_view word)
    : group(std::move(of)),
      rank(as),
      world(std::move(of_world)),
      source(word),
      sayer_(std::make_shared<EndSayer>(group)) {}

End::~End() {
  group->leave(rank);
  sayer_->stop();
  comm.end();
}

CommunicatorOptions End::options(std::string_view name) const {
  CommunicatorOptions options;
  options.name = name;
  options.backend = "loopback";
  options.source = source;
  options.rank = rank;
  options.size = group->size;
  options.ranks = world;
  options.timeout = nanoseconds(timeout_ns.load());
  options.abort = [all = group](Name reason) { all->abort(reason.view()); };
  return options;
}

std::shared_ptr<Pending> End::pending(std::string_view op) const {
  auto made = std::make_shared<Pending>(group, std::string(op) + " of group '" + group->name + "'");
  made->limit = nanoseconds(timeout_ns.load());
  return made;
}

bool End::refused_here(Pending& pending) const {
  if (!EndSayer::is_here(sayer_.get())) return false;
  pending.ending = failed_as(
      How::error, pending.what +
                      ": called in the thread that says the ends of asynchronous operations, which "
                      "it would hold up; call it in another, or with async_op");
  pending.over = true;
  return true;
}

void End::take_places(Pending& pending, std::span<const Arguments> parts) const try {
  pending.places.reserve(parts.size());
  for (const Arguments& part : parts) {
    const ArgumentsView view = view_of(part);
    if (!view.point_to_point) {
      pending.places.push_back(group->next_collective(rank));
    } else if (0 <= view.peer && view.peer < group->size) {
      const bool sends = op_name(part) == OpName::send;
      pending.places.push_back(group->next_one_to_one(sends, rank, view.peer));
    }
  }
  pending.left = pending.places.size();
} catch (const std::bad_alloc&) {
  for (const Place& place : pending.places) group->fail(place, failed_wordless(How::error));
  throw;
}

void End::refuse(Pending& pending, Name reason) const noexcept {
  for (const Place& place : pending.places) group->refuse(place, reason.view());
  const How how = comm.ended() ? How::cancelled : comm.aborted() ? How::aborted : How::vetoed;
  pending.ending =
      failed_if_told(how, [&] { return pending.what + ": " + std::string(reason.view()); });
  pending.over = true;
}

void End::go(const std::shared_ptr<Pending>& pending, std::span<Planned> plans) const noexcept {
  const auto wrong = std::find_if(plans.begin(), plans.end(),
                                  [](const Planned& one) { return !one.fault.empty(); });
  if (wrong != plans.end()) {
    const Ending ending = failed_if_told(How::error, [&] {
      return pending->what + ": rank " + std::to_string(rank) + ": " + wrong->fault;
    });
    for (const Place& place : pending->places) group->fail(place, ending);
    const std::lock_guard lock(group->mutex);
    pending->ending = ending;
    group->changed.notify_all();
    return;
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    group->come(pending->places[i], {pending, std::move(plans[i].plan)});
  }
}

bool End::await(const std::shared_ptr<Pending>& pending, Issuing& issuing) const noexcept {
  {
    const Operation::Waiting waits(pending->operation);
    std::unique_lock lock(group->mutex);
    group->await(lock, pending);
  }
  if (pending->ending->completed) return true;
  issuing.threw(failed_of(*pending->ending));
  set_over(*pending);
  return false;
}

Work End::call(const Arguments& arguments, std::span<const Arguments> parts) {
  bool async = view_of(arguments).async_op;
  const auto made = pending(to_string(op_name(arguments)));
  const Work work(made);
  if (!async && refused_here(*made)) return work;
  if (async) {
    try {
      EndSayer::start(sayer_);
    } catch (const std::system_error& error) {
      made->ending = failed_as(How::error, made->what + ": " + error.what());
      made->over = true;
      return work;
    }
  }
  // All memory first: nobody shall wait for one that lacked it.
  std::vector<Planned> plans;
  plans.reserve(parts.size());
  for (const Arguments& part : parts) plans.push_back(plan_of(part, rank, group->size));
  EndSayer::Watched watched;
  if (async) watched.push_back(made);
  // A hook that calls for an operation itself takes a later number, on each rank.
  take_places(*made, parts);
  Issuing issuing = comm.issue(arguments);
  if (!issuing) return refuse(*made, issuing.reason()), work;
  made->operation = issuing.operation();
  if (parts.empty()) made->ending = Ending{};
  if (made->limit > nanoseconds::zero()) made->deadline = after(made->limit);
  async = async && sayer_->watch(watched);
  go(made, plans);
  if (async) return issuing.returned(&work), work;
  if (!await(made, issuing)) return work;
  (void)made->operation.completed();
  set_over(*made);
  issuing.returned(&work);
  return work;
}

bool End::meet(const std::shared_ptr<Pending>& pending, Planned plan,
               Issuing& issuing) const noexcept {
  pending->operation = issuing.operation();
  if (pending->limit > nanoseconds::zero()) pending->deadline = after(pending->limit);
  go(pending, {&plan, 1});
  return await(pending, issuing);
}

namespace {

Error error_of(const Pending& pending) {
  return {Error::Code::refused, pending.ending->reason()};
}

}  // namespace

Result<Rank> End::split(const Split& what) {
  const auto made = pending("split");
  if (refused_here(*made)) return error_of(*made);
  const Arguments arguments = what;
  auto planned = plan_of(arguments, rank, group->size);
  const auto members = planned.plan.members;
  take_places(*made, {&arguments, 1});
  Issuing issuing = comm.issue(arguments);
  if (!issuing) return refuse(*made, issuing.reason()), error_of(*made);
  if (!meet(made, std::move(planned), issuing)) return error_of(*made);
  if (made->part != nullptr) return join(made->part, members, what.name, issuing);
  comm.no_part();
  issuing.returned_part(nullptr);
  return Rank();
}

Result<Rank> End::join(const std::shared_ptr<Group>& part, const std::vector<int>& members,
                       std::string_view name, Issuing& issuing) const {
  const auto at =
      static_cast<std::int32_t>(std::find(members.begin(), members.end(), rank) - members.begin());
  try {
    std::vector<int> in_world;
    for (const int member : members) in_world.push_back(world[static_cast<std::size_t>(member)]);
    const auto end = std::make_shared<End>(part, at, std::move(in_world), source);
    end->timeout_ns = timeout_ns.load();
    auto joined = comm.part(end->options(name));
    if (!joined) {
      issuing.threw(joined.error().message);
      return joined.error();
    }
    end->comm = std::move(joined).value();
    issuing.returned_part(&end->comm);
    return Rank(end);
  } catch (const std::bad_alloc&) {
    part->leave(at);
    throw;
  }
}

Work End::finalize() {
  const auto made = pending("finalize");
  const Work work(made);
  made->ending = Ending{};
  made->over = true;
  if (comm.ended()) return work;
  Issuing issuing = comm.issue(Finalize{});
  if (!issuing && !comm.aborted()) return refuse(*made, issuing.reason()), work;
  group->leave(rank);
  sayer_->stop();
  issuing.returned();
  comm.end();
  return work;
}

}  // namespace ringmain::collective::loopback::detail
