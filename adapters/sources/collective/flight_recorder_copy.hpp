// What did a recorder's ring hold at one moment? A copy in memory that was there before, of which a
// dump is written while the ring goes on.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "engine/system/chunks.hpp"

#include "adapters/flight/snapshot.hpp"

namespace ringmain::collective::detail {

using flight::FlightEntry;
using flight::FlightFigures;
using flight::FlightGroup;

/// A list that grows and moves nothing: what is there may be read meanwhile. 16,380 places.
template <class T>
class Grown {
 public:
  /// Throws std::bad_alloc.
  void reserve(std::size_t count) {
    for (std::size_t i = reserved_; i < count; i = reserved_) {
      if (i >= engine::ChunkPlace::kPlaces) throw std::bad_alloc();
      const auto at = engine::ChunkPlace::of(static_cast<std::uint32_t>(i)).chunk;
      chunks_[at] = std::make_unique<T[]>(engine::ChunkPlace::size(at));
      reserved_ += engine::ChunkPlace::size(at);
    }
  }
  /// What is reserved.
  [[nodiscard]] std::size_t size() const noexcept { return reserved_; }
  [[nodiscard]] T& operator[](std::size_t i) const noexcept {
    const auto at = engine::ChunkPlace::of(static_cast<std::uint32_t>(i));
    return chunks_[at.chunk][at.place];
  }

 private:
  std::size_t reserved_ = 0;
  std::array<std::unique_ptr<T[]>, engine::ChunkPlace::kChunks> chunks_;
};

class FlightCopy final : public flight::FlightSource {
 public:
  /// Room for so much. Throws std::bad_alloc.
  FlightCopy(std::size_t entries, std::size_t words);

  [[nodiscard]] std::size_t groups() const noexcept override { return group_count_; }
  [[nodiscard]] const FlightGroup& group(std::size_t at) const noexcept override {
    return (*groups_)[at];
  }
  [[nodiscard]] const FlightFigures& figures(std::size_t at) const noexcept override {
    return figures_[at];
  }
  [[nodiscard]] std::size_t entries() const noexcept override { return entry_count_; }
  [[nodiscard]] const FlightEntry& entry(std::size_t at) const noexcept override {
    return entries_[at];
  }
  [[nodiscard]] std::span<const std::int64_t> words() const noexcept override {
    return {words_.get(), word_count_};
  }

  flight::PickleMemo memo;

 private:
  friend class FlightRing;

  const Grown<FlightGroup>* groups_ = nullptr;  // the ring's, which lives as long
  std::size_t group_count_ = 0, entry_count_ = 0;
  const std::size_t capacity_, word_count_;
  Grown<FlightFigures> figures_;
  const std::unique_ptr<FlightEntry[]> entries_;  // oldest first
  const std::unique_ptr<std::int64_t[]> words_;   // at the same places as in the ring
};

}  // namespace ringmain::collective::detail
