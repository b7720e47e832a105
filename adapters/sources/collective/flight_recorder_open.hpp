// Which entries of a flight recorder's ring are an operation's whose end was not said yet? A table
// of a fixed size.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace ringmain::collective::detail {

/// Linear probing, half full at most. Threads: one at a time.
class OpenOperations {
 public:
  /// Of one operation.
  struct Records {
    std::uint64_t first, last;
  };

  /// Throws std::bad_alloc.
  explicit OpenOperations(std::size_t most)
      : mask_(std::bit_ceil(2 * most + 2) - 1), cells_(std::make_unique<Cell[]>(mask_ + 1)) {}

  [[nodiscard]] std::optional<Records> find(std::uint64_t op_id) const noexcept {
    const Cell& cell = cells_[place_of(op_id)];
    return cell.used ? std::optional(cell.records) : std::nullopt;
  }
  /// There are fewer than the most, and it is none of them.
  void add(std::uint64_t op_id, Records records) noexcept {
    cells_[place_of(op_id)] = {true, op_id, records};
  }
  void remove(std::uint64_t op_id) noexcept {
    std::size_t hole = place_of(op_id);
    if (!cells_[hole].used) return;
    // What was pushed on over this place comes back, so that a search may end at a free one.
    for (std::size_t at = next(hole); cells_[at].used; at = next(at)) {
      const std::size_t home = home_of(cells_[at].op_id);
      if (((at - home) & mask_) < ((at - hole) & mask_)) continue;
      cells_[hole] = cells_[at];
      hole = at;
    }
    cells_[hole].used = false;
  }
  void clear() noexcept {
    for (std::size_t at = 0; at <= mask_; ++at) cells_[at].used = false;
  }
  template <class F>
  void each(F take) const noexcept {
    for (std::size_t at = 0; at <= mask_; ++at)
      if (cells_[at].used) take(cells_[at].op_id, cells_[at].records);
  }

 private:
  struct Cell {
    bool used = false;
    std::uint64_t op_id = 0;
    Records records{};
  };
  [[nodiscard]] std::size_t next(std::size_t at) const noexcept { return (at + 1) & mask_; }
  [[nodiscard]] std::size_t home_of(std::uint64_t op_id) const noexcept {
    return static_cast<std::size_t>(op_id * 0x9e3779b97f4a7c15u >> 32) & mask_;
  }
  /// Where it is, or would be.
  [[nodiscard]] std::size_t place_of(std::uint64_t op_id) const noexcept {
    std::size_t at = home_of(op_id);
    while (cells_[at].used && cells_[at].op_id != op_id) at = next(at);
    return at;
  }

  std::size_t mask_;
  std::unique_ptr<Cell[]> cells_;
};

}  // namespace ringmain::collective::detail
