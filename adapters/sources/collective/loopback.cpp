#include "adapters/sources/collective/loopback.hpp"

#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "adapters/sources/collective/loopback_core.hpp"

namespace ringmain::collective::loopback {

// --- Work ---

State Work::wait_for(nanoseconds limit) const {
  if (of_ == nullptr) return State::failed;
  if (const State now = state(); now != State::under_way) return now;
  {
    const Operation::Waiting waits(of_->operation);
    std::unique_lock lock(of_->group->mutex);
    const auto is_over = [this] { return of_->over || detail::EndSayer::is_here(of_->said_by); };
    if (limit < nanoseconds::zero()) {
      of_->group->changed.wait(lock, is_over);
    } else {
      (void)of_->group->changed.wait_until(lock, detail::after(limit), is_over);
    }
  }
  return state();
}

State Work::state() const {
  if (of_ == nullptr) return State::failed;
  const std::lock_guard lock(of_->group->mutex);
  if (!of_->over) return State::under_way;
  return of_->ending->completed ? State::completed : State::failed;
}

How Work::how() const {
  return state() == State::failed && of_ != nullptr ? of_->ending->how : How::error;
}

std::string Work::reason() const {
  if (of_ == nullptr) return "there is no operation";
  return state() == State::failed ? of_->ending->reason() : std::string();
}

// --- Rank ---

const Communicator& Rank::comm() const noexcept {
  static const Communicator none;
  return end_ == nullptr ? none : end_->comm;
}

void Rank::set_timeout(nanoseconds limit) const noexcept {
  if (end_ == nullptr) return;
  end_->timeout_ns = limit.count();
  end_->comm.set_timeout(limit);
}

Work Rank::call(const Arguments& arguments) const {
  const auto held = end_;  // a hook may let this very rank go
  return held == nullptr ? Work() : held->call(arguments, {&arguments, 1});
}

Work Rank::batch_op_issue(std::span<const OneToOne> parts, bool async_op) const {
  const auto held = end_;
  if (held == nullptr) return {};
  std::vector<Arguments> all;
  all.reserve(parts.size());
  std::vector<BatchPart> said;
  said.reserve(parts.size());
  for (const OneToOne& part : parts) {
    std::visit([&all](const auto& one) { all.emplace_back(one); }, part);
    const bool sends = std::holds_alternative<Send>(part);
    const Send& one = sends ? std::get<Send>(part) : std::get<Recv>(part);
    said.push_back({one.tensor, one.peer, sends});
  }
  return held->call(BatchOpIssue{parts.size(), async_op, said}, all);
}

namespace {
Error no_rank() {
  return {Error::Code::refused, "there is no such rank; take one that World::rank() has"};
}
}  // namespace

Result<Rank> Rank::split(const Split& what) const {
  const auto held = end_;
  return held == nullptr ? Result<Rank>(no_rank()) : held->split(what);
}

Result<Window> Rank::new_window(const Tensor& memory) const {
  const auto held = end_;
  return held == nullptr ? Result<Window>(no_rank()) : held->new_window(memory);
}

Work Rank::finalize() const {
  const auto held = end_;
  return held == nullptr ? Work() : held->finalize();
}

// --- World ---

Result<World> World::make(Bus& bus, const Options& options) {
  if (options.ranks < 1)
    return Error{Error::Code::refused, "a group has ranks from 1; give Options::ranks"};
  const auto group = std::make_shared<detail::Group>(std::string(options.name), options.ranks);
  std::vector<int> world(static_cast<std::size_t>(options.ranks));
  std::iota(world.begin(), world.end(), 0);
  World made;
  for (std::int32_t rank = 0; rank < options.ranks; ++rank) {
    const auto end = std::make_shared<detail::End>(group, rank, world, options.source);
    end->timeout_ns = options.timeout.count();
    auto comm = Communicator::make(bus, end->options(options.name));
    if (!comm) return comm.error();
    end->comm = std::move(comm).value();
    made.ranks_.push_back(Rank(end));
  }
  return made;
}

Rank World::rank(std::int32_t rank) const {
  return 0 <= rank && rank < size() ? ranks_[static_cast<std::size_t>(rank)] : Rank();
}

void World::run(const std::function<void(Rank& rank)>& program) const {
  std::mutex mutex;
  std::exception_ptr first;
  const auto give_up = [&](Rank& rank, const char* what) {
    {
      const std::lock_guard lock(mutex);
      if (first == nullptr) first = std::current_exception();
    }
    try {
      (void)rank.comm().abort("rank " + std::to_string(rank.rank()) + " has thrown: " + what);
    } catch (const std::bad_alloc&) {
      rank.end_->group->abort(what);  // without hooks
    }
  };
  const auto run_one = [&](Rank rank) {
    try {
      program(rank);
    } catch (const std::exception& thrown) {
      give_up(rank, thrown.what());
    } catch (...) {
      give_up(rank, "no std::exception");
    }
  };
  std::vector<std::thread> threads;
  try {
    threads.reserve(ranks_.size());
    for (const Rank& rank : ranks_) threads.emplace_back(run_one, rank);
  } catch (const std::exception& thrown) {  // no thread for it: the others would wait
    Rank missing = ranks_[threads.size()];
    give_up(missing, thrown.what());
  }
  for (std::thread& thread : threads) thread.join();
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace ringmain::collective::loopback
