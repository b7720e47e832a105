// What is left of a bus in the child of a fork()? Memory without its threads: no event is ever
// drained there again, locks may be held by threads that are gone, and captures may own files that
// the parent still writes.
//
// So all that was made before the fork is inert in the child: each call asks forked() first and
// then takes no lock and waits for no thread, and nothing of it is ever destroyed. What the child
// makes itself works as anywhere. fork() is held back until the few locks that the child needs as
// well (names, schemas, channels by name) are taken.
#pragma once
#include <cstdint>
#include <mutex>
#include <new>

#include "atomics.hpp"

namespace ringmain::engine {

/// How many forks lie between the process that loaded the library and this one. Written by the
/// child's only thread.
extern Atomic<std::uint32_t> forks;

/// When was something made?
class Born {
 public:
  /// True: before a fork, and this is the child.
  [[nodiscard]] bool forked() const noexcept {
    return in_ != forks.load(std::memory_order_relaxed);  // relaxed: set before there are others
  }

 private:
  std::uint32_t in_ = forks.load(std::memory_order_relaxed);  // relaxed: as above
};

/// Is called at every fork() of the process, but not at vfork, posix_spawn or clone.
///
/// Witnesses hear of a fork in rising order of `rank`, and after it in falling order. Their
/// functions allocate nothing and must not make or destroy a witness.
class ForkWitness {
 public:
  explicit ForkWitness(unsigned rank) noexcept : rank_(rank) {}
  ForkWitness(const ForkWitness&) = delete;
  ForkWitness& operator=(const ForkWitness&) = delete;
  virtual void before_fork() noexcept {}
  virtual void after_fork() noexcept {}  // in the parent
  virtual void in_child() noexcept {}

 protected:
  virtual ~ForkWitness() = default;
  /// Call it at the end of the most derived constructor, and end_watching() at the begin of its
  /// destructor: a fork may come at any time. Throws std::bad_alloc.
  void begin_watching();
  void end_watching() noexcept;

 private:
  friend struct ForkWitnesses;
  const unsigned rank_;
  ForkWitness* before_ = nullptr;
  ForkWitness* next_ = nullptr;
};

/// Ranks: an outer lock comes first.
enum : unsigned {
  kForkLedgers,
  kForkBus = 1,
  kForkSchemas = 2,
  kForkNames = 3,
  kForkWorkers = 4,
  kForkFlight = 5,
  kForkBuses = 6
};

/// A lock that is free in every child: nobody else holds it while the process forks.
class ForkMutex final : public ForkWitness {
 public:
  explicit ForkMutex(unsigned rank) : ForkWitness(rank) { begin_watching(); }
  ~ForkMutex() override { end_watching(); }
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void before_fork() noexcept override { mutex_.lock(); }
  void after_fork() noexcept override { mutex_.unlock(); }
  void in_child() noexcept override { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

/// A lock that no fork waits for, as it may be held for long: it is free in every child. What it
/// guards is there as it was at that moment, so whoever takes it in a child begins anew.
class FreshMutex final : public ForkWitness {
 public:
  explicit FreshMutex(unsigned rank) : ForkWitness(rank) { begin_watching(); }
  ~FreshMutex() override { end_watching(); }
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void in_child() noexcept override { new (&mutex_) std::mutex; }

 private:
  std::mutex mutex_;
};

/// Keeps an object that the child must not destroy, where a leak checker finds it.
void keep_from_before_fork(const void* object) noexcept;

}  // namespace ringmain::engine
