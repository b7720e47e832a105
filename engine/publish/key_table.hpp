// Where in the queue does the latest event of each key lie? Asked by the one feeder of a coalescing
// mailbox, at each event.
//
// Open addressing over the bytes of the key, at most half full. An entry says at which index of the
// lane its key was queued last. When room is needed, entries whose events have left the lane are
// removed, so the table has the keys that are queued and not all that ever were. It allocates only
// when it grows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringmain::engine {

class KeyTable {
 public:
  enum : std::uint32_t { kKeyBytesMax = 64 };
  static_assert(kKeyBytesMax % 8 == 0, "keys are padded to multiples of 8 bytes");
  enum : std::uint64_t { kNowhere = ~std::uint64_t{0} };

  /// `key_bytes`: at most kKeyBytesMax.
  explicit KeyTable(std::uint32_t key_bytes) noexcept : stride_((key_bytes + 7) / 8 * 8) {}

  /// The index where `key` (padded with zeros to a multiple of 8 bytes) was queued last, to be read
  /// and written; kNowhere: it is not in the table. `oldest`: events with smaller indices have left
  /// the lane. nullptr: out of memory. Valid until the next call.
  [[nodiscard]] std::uint64_t* at(const std::byte* key, std::uint64_t oldest) noexcept;
  [[nodiscard]] std::size_t room() const noexcept { return index_.size(); }

 private:
  [[nodiscard]] std::size_t find(const std::byte* key) const noexcept;
  bool make_room(std::uint64_t oldest) noexcept;

  std::uint32_t stride_;
  std::size_t used_ = 0;
  std::vector<std::uint64_t> index_;  // kEmpty: no key here
  std::vector<std::byte> keys_;
};

}  // namespace ringmain::engine
