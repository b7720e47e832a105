// What are an operation's two events compared with?
#pragma once
#include <cstdint>
#include <memory>

#include "engine/system/clock.hpp"

#include "events/collective.hpp"

#include "bench/reference.hpp"
#include "bench/repetition.hpp"
#include "bench/time_each.hpp"

namespace ringmain::bench {

/// A bare enqueue of each by a token, and the two looks at the clock.
template <int kStretch>
void two_enqueues(Repetition& repetition) {
  auto begins = std::make_unique<RawQueue<collective::Issued>>();
  auto ends = std::make_unique<RawQueue<collective::Completed>>();
  std::uint64_t seen = 0;
  const auto hear = [&seen](const auto&) { ++seen; };
  repetition.value(time_stretches<kStretch>(
      [&] {
        const std::int64_t began = engine::now_ns();
        (void)begins->push([&]() noexcept {
          collective::Issued event;
          event.duration_ns = began;
          return event;
        });
        (void)ends->push([&]() noexcept {
          collective::Completed event;
          event.duration_ns = engine::now_ns() - began;
          return event;
        });
      },
      [&] {
        while (begins->take(hear) + ends->take(hear) != 0) {
        }
      }));
}

}  // namespace ringmain::bench
