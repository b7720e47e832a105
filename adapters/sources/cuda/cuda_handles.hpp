// Which of CUDA's handles live, and how often was each address used before?
//
// A table of fixed size. A handle lies in one of two sets of 16, the one with fewer live handles at
// its birth. One word says whose a place is and whether it lives; it is changed by
// compare-and-exchange, so that of a revival and an eviction one wins. A dead handle stays until
// its place is wanted. Each set has a floor, which a handle raises to its generation before it
// dies, or at its birth in a place that was used before: whoever takes a place begins above the
// floors of both sets, and so above all that this address ever had.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ringmain::cuda {

/// Addresses of one class are told apart.
enum class HandleClass : std::uint8_t { event, stream, memory, host_memory, array };

/// Threads: any; calls for one handle do not overlap (CUDA's own rule), for different ones they do.
/// Progress: wait-free but for the race for a place, which is given up after 32 tries: no lock, no
/// allocation, no system call.
class Handles {
 public:
  /// Room for that many, rounded up to whole sets; 28 bytes each, taken from the system as they are
  /// touched. Throws std::bad_alloc.
  explicit Handles(std::uint32_t room);
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles();

  struct Known {
    std::uint32_t generation = 0;  // from 1 up; (class, address, generation) comes once in a table
    std::uint64_t bytes = 0;
    std::uint32_t context = 0;
    bool live = false;
  };
  /// Generation 0: no room, or an address of more than 60 bits; counted.
  Known made(HandleClass kind, std::uint64_t handle, std::uint64_t bytes,
             std::uint32_t context) noexcept;
  /// Generation 0: never seen made, or dead and evicted.
  [[nodiscard]] Known find(HandleClass kind, std::uint64_t handle) const noexcept;
  /// Marks it dead. What it was.
  Known gone(HandleClass kind, std::uint64_t handle) noexcept;
  /// Its release failed: live again, with the same generation. If it was evicted since, it is
  /// unknown from now on, and counted as not kept.
  void back(HandleClass kind, std::uint64_t handle) noexcept;
  /// All of that context are dead. Looks at the whole table. Of an address that is released and
  /// made anew meanwhile the new handle may be taken for dead, too; so with forget().
  void context_gone(std::uint32_t context) noexcept;
  /// All of that class are dead, as far as is known: calls were not heard for a while. Looks at the
  /// whole table.
  void forget(HandleClass kind) noexcept;
  /// How many there is room for, as it was asked for.
  [[nodiscard]] std::uint32_t room() const noexcept { return room_; }
  /// How many were not kept.
  [[nodiscard]] std::uint64_t unkept() const noexcept { return unkept_; }

 private:
  enum : std::size_t { kWays = 16 };
  struct Set;
  struct Place {
    Set* set = nullptr;
    std::size_t way = 0;
    std::uint64_t key = 0;  // as it was found
  };

  [[nodiscard]] Set& home(std::uint64_t key, int choice) const noexcept;
  [[nodiscard]] Place place_of(std::uint64_t key) const noexcept;
  [[nodiscard]] Place claim(std::uint64_t key) noexcept;
  [[nodiscard]] static bool take(Place& place) noexcept;
  [[nodiscard]] static bool claim_in(Set& set, Place& place) noexcept;
  [[nodiscard]] static Known read(const Place& place) noexcept;
  template <class Which>
  void end_all(Which which) noexcept;

  std::uint32_t room_;
  std::uint64_t sets_count_;
  Set* sets_;
  std::atomic<std::uint64_t> unkept_{0};
};

}  // namespace ringmain::cuda
