#include "tests/harness/nccl/stage.hpp"

#include <utility>

namespace ringmain::nccl_conformance {
namespace {

/// A text that lives as long as the process, as the board wants it.
const char* kept(const std::string& text) {
  static std::mutex lock;
  static std::deque<std::string> texts;
  const std::lock_guard guard(lock);
  for (const std::string& known : texts) {
    if (known == text) return known.c_str();
  }
  return texts.emplace_back(text).c_str();
}

}  // namespace

Actor::Actor(Board& board, const std::string& name, bool serial)
    : board_(board), name_(kept(name)), serial_(serial), thread_([this] { run(); }) {}

Actor::~Actor() {
  {
    const std::lock_guard guard(lock_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Actor::post(std::function<void()> work) {
  {
    const std::lock_guard guard(lock_);
    work_.push_back(std::move(work));
    ++posted_;
  }
  changed_.notify_all();
  if (serial_) wait();
}

void Actor::wait() {
  std::unique_lock guard(lock_);
  changed_.wait(guard, [this] { return work_.empty() && !busy_; });
}

void Actor::run() {
  board_.name(name_);
  std::unique_lock guard(lock_);
  for (;;) {
    changed_.wait(guard, [this] { return ends_ || !work_.empty(); });
    if (work_.empty()) return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    busy_ = true;
    guard.unlock();
    work();
    guard.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

std::uint64_t Actor::posted() {
  const std::lock_guard guard(lock_);
  return posted_;
}

Actor& Stage::actor(const std::string& name) {
  const std::lock_guard guard(lock_);
  for (auto& [known, actor] : actors_) {
    if (known == name) return *actor;
  }
  auto made = std::make_unique<Actor>(board, name, options.serial);
  return *actors_.emplace_back(name, std::move(made)).second;
}

std::vector<Actor*> Stage::all() {
  const std::lock_guard guard(lock_);
  std::vector<Actor*> found;
  for (auto& [name, actor] : actors_) found.push_back(actor.get());
  return found;
}

void Stage::wait_for_all() {
  const auto posted = [&] {
    std::uint64_t sum = 0;
    for (Actor* actor : all()) sum += actor->posted();
    return sum;
  };
  // What was done meanwhile may have posted more.
  for (std::uint64_t before = ~std::uint64_t{0}; before != posted();) {
    before = posted();
    for (Actor* actor : all()) actor->wait();
  }
}

void Stage::open(Communicator& communicator) {
  front.init(communicator);
  if (!options.own_mask) front.set_mask(0xFFFF);
}

Communicator Stage::communicator(int rank, int ranks, int nodes) {
  Communicator made;
  made.id = 0xC0111EC7'0000'0000 + ++communicators_;
  made.name = "default_pg:" + std::to_string(communicators_);
  made.rank = rank;
  made.ranks = ranks;
  made.nodes = nodes;
  return made;
}

}  // namespace ringmain::nccl_conformance
