// A snapshot as what a dump is written of.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "adapters/flight/snapshot.hpp"

namespace ringmain::flight {

class OfSnapshot final : public FlightSource {
 public:
  explicit OfSnapshot(const FlightSnapshot& of) noexcept : of_(of) {}
  [[nodiscard]] std::size_t groups() const noexcept override { return of_.groups.size(); }
  [[nodiscard]] const FlightGroup& group(std::size_t at) const noexcept override {
    return of_.groups[at];
  }
  [[nodiscard]] const FlightFigures& figures(std::size_t at) const noexcept override {
    return of_.groups[at].figures;
  }
  [[nodiscard]] std::size_t entries() const noexcept override { return of_.entries.size(); }
  [[nodiscard]] const FlightEntry& entry(std::size_t at) const noexcept override {
    return of_.entries[at];
  }
  [[nodiscard]] std::span<const std::int64_t> words() const noexcept override { return of_.words; }

 private:
  const FlightSnapshot& of_;
};

}  // namespace ringmain::flight
