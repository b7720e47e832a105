// What must be true of every event that is heard, however many threads come and go meanwhile?
//
// Each event carries its publisher, its number there and a checksum. An oracle beside a callback
// keeps the last number of each publisher: a smaller one is a duplicate or out of order, a gap must
// have been counted as a loss. A poisoned closure finds calls after its end, and leaks.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "bus/bus.hpp"

namespace ringmain::stress {

/// What went wrong, counted; the first few in words.
class Faults {
 public:
  void add(const std::string& what) {
    ++count_;
    const std::lock_guard lock(mutex_);
    if (words_.size() < 8) words_.push_back(what);
  }
  void expect(bool holds, const std::string& what) {
    if (!holds) add(what);
  }
  void expect_equal(std::uint64_t a, std::uint64_t b, const std::string& what) {
    if (a != b) add(what + ": " + std::to_string(a) + " against " + std::to_string(b));
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::string words() const {
    const std::lock_guard lock(mutex_);
    std::string all;
    for (const auto& w : words_) all += w + "\n";
    return all;
  }

 private:
  std::atomic<std::uint64_t> count_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> words_;
};

/// splitmix64: small, and the same everywhere for the same seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return (*this)() % n; }

 private:
  std::uint64_t state_;
};

template <std::size_t kWords>
struct Said {
  std::uint32_t id = 0;
  std::uint32_t n = 0;  // 1, 2, 3 … of this id, refused ones included
  std::uint64_t check = 0;
  std::array<std::uint64_t, kWords> words{};

  static Said make(std::uint32_t id, std::uint32_t n) noexcept {
    Said s;
    s.id = id;
    s.n = n;
    s.check = (std::uint64_t{id} << 32 | n) * 0x9e3779b97f4a7c15ull;
    for (std::size_t i = 0; i < kWords; ++i) s.words[i] = s.check + i;
    return s;
  }
  [[nodiscard]] bool intact() const noexcept {
    if (check != (std::uint64_t{id} << 32 | n) * 0x9e3779b97f4a7c15ull) return false;
    for (std::size_t i = 0; i < kWords; ++i) {
      if (words[i] != check + i) return false;
    }
    return true;
  }
};
template <std::size_t kWords>
constexpr auto describe(EventOf<Said<kWords>>) {
  return event("stress.said", field<&Said<kWords>::id>("id", Unit::id),
               field<&Said<kWords>::n>("n", Unit::count));
}

/// One subscription's memory. Threads: those that call back, one at a time.
class Oracle {
 public:
  Oracle(std::string name, std::size_t ids, Faults& faults)
      : name_(std::move(name)), last_(ids), heard_(ids), faults_(faults) {}

  template <std::size_t kWords>
  void hear(const Said<kWords>& e) {
    if (!e.intact() || e.id >= last_.size()) {
      faults_.add(name_ + ": a payload is damaged");
      return;
    }
    if (e.n <= last_[e.id]) {
      faults_.add(name_ + ": publisher " + std::to_string(e.id) + " said " + std::to_string(e.n) +
                  " after " + std::to_string(last_[e.id]));
    }
    last_[e.id] = e.n;
    ++heard_[e.id];
    ++sum_;
  }
  template <std::size_t kWords>
  void hear(const Said<kWords>& e, const Stamp& stamp) {
    if (stamp.sequence != e.n)
      faults_.add(name_ + ": event " + std::to_string(e.n) + " is stamped as " +
                  std::to_string(stamp.sequence));
    hear(e);
  }
  [[nodiscard]] std::uint64_t heard(std::size_t id) const { return heard_[id]; }
  [[nodiscard]] std::uint32_t last(std::size_t id) const { return last_[id]; }
  [[nodiscard]] std::uint64_t sum() const { return sum_; }

 private:
  std::string name_;
  std::vector<std::uint32_t> last_;
  std::vector<std::uint32_t> heard_;
  std::uint64_t sum_ = 0;
  Faults& faults_;
};

inline void expect_i3(const SubscriberStats& s, const std::string& who, Faults& faults) {
  faults.expect_equal(
      s.offered,
      s.delivered + s.threw + s.filtered + s.skipped + s.dropped + s.coalesced + s.pending,
      who + ": I3 does not balance");
}

/// A closure that knows whether it lives: lies in captures, is asked at each call.
class Poison {
 public:
  struct Count {
    std::atomic<std::int64_t> living{0};
    std::atomic<std::uint64_t> calls{0};
  };
  Poison(Count& count, Faults& faults) : count_(&count), faults_(&faults) { ++count_->living; }
  Poison(const Poison& other) : count_(other.count_), faults_(other.faults_) { ++count_->living; }
  Poison& operator=(const Poison&) = delete;
  ~Poison() {
    if (life_ != kAlive) faults_->add("captures were destroyed twice");
    life_ = kDead;
    --count_->living;
  }
  /// A call is running: the captures must be alive from its start to its end.
  void called() const {
    if (life_ != kAlive) faults_->add("a callback ran on destroyed captures");
    ++count_->calls;
  }

 private:
  enum : std::uint64_t { kAlive = 0xa11fea11fea11feaull, kDead = 0xdeaddeaddeaddeadull };
  volatile std::uint64_t life_ = kAlive;
  Count* count_;
  Faults* faults_;
};

}  // namespace ringmain::stress
