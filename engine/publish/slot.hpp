// What lies in a queue? A slot: 16 bytes of header, then the event, in one of nine sizes.
//
// Sizes are classes so that queues are compiled once, in the library, whatever the event types are.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace ringmain::engine {

/// In front of every queued event.
struct SlotHeader {
  // Grows with every event offered on the lane, also with refused ones: a gap is a loss. In a ring
  // it also says that the slot is written (e.published).
  std::uint64_t sequence;
  std::int64_t time_ns;  // 0: the worker reads the clock
};
static_assert(sizeof(SlotHeader) == 16);

/// In front of an event in a mailbox, whose lane there is not its publisher's.
struct Envelope {
  std::uint64_t sequence;
  std::uint32_t publisher;
  std::uint32_t time_from;
};
static_assert(sizeof(Envelope) == 16);

constexpr std::array<std::uint32_t, 9> slot_sizes() {
  return {32, 48, 64, 96, 128, 192, 256, 512, 1056};
}

/// The index of the smallest class that holds `payload_bytes` after a header.
constexpr unsigned slot_class(std::size_t payload_bytes) {
  const auto sizes = slot_sizes();
  unsigned c = 0;
  while (c + 1 < sizes.size() && sizes[c] < payload_bytes + sizeof(SlotHeader)) ++c;
  return c;
}
constexpr std::uint32_t slot_bytes(unsigned slot_class) {
  return slot_sizes()[slot_class];
}
/// Of one event.
enum : std::size_t { kPayloadBytesMax = 1024 };
static_assert(slot_bytes(slot_class(kPayloadBytesMax)) >= kPayloadBytesMax + sizeof(SlotHeader));
static_assert(slot_bytes(slot_class(kPayloadBytesMax + sizeof(Envelope))) >=
              kPayloadBytesMax + sizeof(Envelope) + sizeof(SlotHeader));

/// A slot as moodycamel moves it: bytes, which a builder writes in place.
template <std::size_t kBytes>
struct alignas(16) Slot {
  SlotHeader header;
  std::byte payload[kBytes - sizeof(SlotHeader)];

  Slot() = default;
  /// `build` writes header and payload in place, without a copy, so that a read right after gets
  /// the stores forwarded.
  template <class Build>
  requires std::is_invocable_v<Build&, Slot&>
  explicit Slot(Build& build) noexcept {  // NOLINT: the members are written by build
    build(*this);
  }
};

}  // namespace ringmain::engine
