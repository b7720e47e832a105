// Which communicator does a handle mean?
//
// MPI takes a lock to answer that, so what a call needs is kept here, and found by the handle's
// bits without a lock. A freed handle may come back as another communicator, so its place is given
// up when the program frees it. Includes no MPI header.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "bus/text.hpp"

namespace ringmain::mpi {

class Kept;

/// Its words are written before the handle can be found, and when the communicator gets a new name.
struct Group {
  std::atomic<Name> name{};
  std::atomic<std::int32_t> rank{-1};  // of this process
  std::atomic<std::int32_t> size{0};
  std::atomic<std::int32_t> remote{0};   // an intercommunicator's other side; 0: it is none
  std::atomic<std::int32_t> sources{0};  // neighbours in its topology
  std::atomic<std::int32_t> destinations{0};
  std::atomic<std::uint64_t> collectives{
      0};                                   // called so far, by this process, while it has no name
  std::atomic<std::uint64_t> transfers{0};  // the same of sends and receives
  std::atomic<Kept*> kept{nullptr};         // for its hooks
  std::atomic<bool> making{false};          // `kept` is being made
};

/// What is known when a communicator is first met.
struct GroupFacts {
  Name name{};
  std::int32_t rank = -1;
  std::int32_t size = 0;
  std::int32_t remote = 0;
  std::int32_t sources = 0;
  std::int32_t destinations = 0;
};

class Groups {
 public:
  static constexpr std::size_t kLiveMax = 4096;  // at once

  /// nullptr: not met yet. Progress: wait-free. Threads: any; not while the handle is freed, which
  /// MPI forbids too.
  [[nodiscard]] Group* find(std::uint64_t handle) noexcept {
    for (std::size_t i = 0; i < kLiveMax; ++i) {
      Place& place = places_[(home(handle) + i) % kLiveMax];
      const std::uint64_t key = place.key;
      if (key == handle) return &place.group;
      if (key == kNever) return nullptr;
    }
    return nullptr;
  }
  struct Added {
    Group* group = nullptr;  // nullptr: kLiveMax are alive
    bool new_here = false;   // false: another thread has added it first
  };
  /// Takes a lock.
  Added add(std::uint64_t handle, const GroupFacts& facts) noexcept {
    const std::lock_guard lock(mutex_);
    if (Group* const there = find(handle)) return {there, false};
    for (std::size_t i = 0; i < kLiveMax; ++i) {
      Place& place = places_[(home(handle) + i) % kLiveMax];
      if (place.key > kGone) continue;
      write(place.group, facts);
      place.key = handle;
      return {&place.group, true};
    }
    return {};
  }
  void forget(std::uint64_t handle) noexcept {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < kLiveMax; ++i) {
      Place& place = places_[(home(handle) + i) % kLiveMax];
      if (place.key == kNever) return;
      if (place.key == handle) place.key = kGone;
    }
  }

 private:
  enum : std::uint64_t { kNever = 0, kGone = 1 };  // no handle of a communicator is one of these
  struct Place {
    std::atomic<std::uint64_t> key{kNever};
    Group group;
  };
  static std::size_t home(std::uint64_t handle) noexcept {
    return (handle * 0x9e3779b97f4a7c15u) >> 52;
  }
  static void write(Group& group, const GroupFacts& facts) noexcept {
    group.name = facts.name;
    group.rank = facts.rank;
    group.size = facts.size;
    group.remote = facts.remote;
    group.sources = facts.sources;
    group.destinations = facts.destinations;
    group.collectives = 0;
    group.transfers = 0;
    group.kept = nullptr;
    group.making = true;
  }

  std::array<Place, kLiveMax> places_{};
  std::mutex mutex_;
};

}  // namespace ringmain::mpi
