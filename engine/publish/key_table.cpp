#include "engine/publish/key_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace ringmain::engine {
namespace {

enum : std::uint64_t { kEmpty = KeyTable::kNowhere - 1 };

/// splitmix64's finisher, over the key's words.
std::uint64_t hash(const std::byte* key, std::size_t bytes) noexcept {
  std::uint64_t h = 0x9e3779b97f4a7c15ull;
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, key + i, 8);
    h = (h ^ word) * 0xbf58476d1ce4e5b9ull;
    h ^= h >> 31;
  }
  return h;
}

}  // namespace

std::size_t KeyTable::find(const std::byte* key) const noexcept {
  const std::size_t mask = index_.size() - 1;
  std::size_t i = hash(key, stride_) & mask;
  while (index_[i] != kEmpty && std::memcmp(&keys_[i * stride_], key, stride_) != 0)
    i = (i + 1) & mask;
  return i;
}

std::uint64_t* KeyTable::at(const std::byte* key, std::uint64_t oldest) noexcept {
  if (!index_.empty()) {
    const std::size_t i = find(key);
    if (index_[i] != kEmpty) return &index_[i];
  }
  if (2 * (used_ + 1) > index_.size() && !make_room(oldest)) return nullptr;
  const std::size_t i = find(key);
  std::memcpy(&keys_[i * stride_], key, stride_);
  ++used_;
  return &(index_[i] = kNowhere);
}

bool KeyTable::make_room(std::uint64_t oldest) noexcept {
  const auto queued = [oldest](std::uint64_t index) { return index < kEmpty && index >= oldest; };
  const auto kept = static_cast<std::size_t>(std::count_if(index_.begin(), index_.end(), queued));
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(16, 4 * (kept + 1)));
  try {
    std::vector<std::uint64_t> index(size, std::uint64_t{kEmpty});
    std::vector<std::byte> keys(size * stride_);
    index.swap(index_);
    keys.swap(keys_);
    used_ = kept;
    for (std::size_t i = 0; i < index.size(); ++i) {
      if (!queued(index[i])) continue;
      const std::size_t to = find(&keys[i * stride_]);
      index_[to] = index[i];
      std::memcpy(&keys_[to * stride_], &keys[i * stride_], stride_);
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace ringmain::engine
