#include "bus/text.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/system/fork.hpp"

#include "bus/core/name_mirror.hpp"

namespace ringmain {

namespace detail {
/// With the table's lock.
class NameMirrors {
 public:
  void tell(std::uint32_t id, std::string_view name) const noexcept {
    for (NameMirror* m = first_; m != nullptr; m = m->next_) m->add(id, name);
  }
  void put(NameMirror& mirror) noexcept { mirror.next_ = std::exchange(first_, &mirror); }
  void take(const NameMirror& mirror) noexcept {
    for (NameMirror** at = &first_; *at != nullptr; at = &(*at)->next_) {
      if (*at != &mirror) continue;
      *at = mirror.next_;
      return;
    }
  }

 private:
  NameMirror* first_ = nullptr;
};
}  // namespace detail

namespace {

enum : std::size_t {
  kNamesMax = 1u << 20,
  kNameBytesMax = 64 * 1024,
  kBytesMax = 256u << 20,
  kChunkNames = 4096,
  kArenaBytes = 64 * 1024
};

/// Append-only: a view stays valid for ever. Readers take no lock.
class NameTable {
 public:
  std::uint32_t intern(std::string_view s) noexcept {
    const std::lock_guard lock(mutex_);
    if (s.size() > kNameBytesMax) {
      s = s.substr(0, detail::utf8_prefix(s, kNameBytesMax));
      ++stats_.truncated;
    }
    try {
      if (const auto found = ids_.find(s); found != ids_.end()) return found->second;
      if (next_ >= kNamesMax || stats_.bytes + s.size() > kBytesMax) return ++stats_.refused, kFull;
      const std::string_view kept = keep(s);
      auto& chunk = chunks_[next_ / kChunkNames];
      if (chunk.load() == nullptr) chunk.store(new std::string_view[kChunkNames]);
      chunk.load()[next_ % kChunkNames] = kept;
      ids_.emplace(kept, next_);
      ++stats_.names;
      stats_.bytes += kept.size();
      mirrors_.tell(next_, kept);
      return next_++;
    } catch (const std::bad_alloc&) {
      return ++stats_.refused, kFull;
    }
  }
  std::string_view view(std::uint32_t id) const noexcept {
    if (id == 0 || id >= kNamesMax) return {};
    if (id == kFull) return "(names full)";
    const std::string_view* chunk = chunks_[id / kChunkNames].load();
    return chunk == nullptr ? std::string_view{} : chunk[id % kChunkNames];
  }
  void begin(detail::NameMirror& mirror) noexcept {
    const std::lock_guard lock(mutex_);
    mirrors_.put(mirror);
    for (std::uint32_t id = kFirst; id < next_; ++id) mirror.add(id, view(id));
  }
  void end(const detail::NameMirror& mirror) noexcept {
    const std::lock_guard lock(mutex_);
    mirrors_.take(mirror);
  }
  NamesStats stats() const noexcept {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  enum : std::uint32_t { kFull = 1, kFirst = 2 };

  std::string_view keep(std::string_view s) {
    if (s.size() > left_) {
      const std::size_t bytes = s.size() > kArenaBytes / 4 ? s.size() : std::size_t{kArenaBytes};
      arenas_.push_back(std::make_unique<char[]>(bytes));
      at_ = arenas_.back().get();
      left_ = bytes;
    }
    std::memcpy(at_, s.data(), s.size());
    const std::string_view kept{at_, s.size()};
    at_ += s.size();
    left_ -= s.size();
    return kept;
  }

  mutable engine::ForkMutex mutex_{engine::kForkNames};
  std::unordered_map<std::string_view, std::uint32_t> ids_;
  std::vector<std::unique_ptr<char[]>> arenas_;
  char* at_ = nullptr;
  std::size_t left_ = 0;
  std::uint32_t next_ = kFirst;
  NamesStats stats_;
  detail::NameMirrors mirrors_;
  std::array<std::atomic<std::string_view*>, kNamesMax / kChunkNames> chunks_{};
};

NameTable& table() noexcept {
  static NameTable& names = *new NameTable;  // never destroyed: events outlive static objects
  return names;
}
// Made before there are threads: a fork while another thread holds the guard would leave it locked.
[[maybe_unused]] const NameTable& made_at_load = table();

}  // namespace

Name::Name(std::string_view s) noexcept : id_(s.empty() ? 0 : table().intern(s)) {}
std::string_view Name::view() const noexcept {
  return table().view(id_);
}
void detail::NameMirror::begin_mirroring() noexcept {
  table().begin(*this);
}
void detail::NameMirror::end_mirroring() noexcept {
  table().end(*this);
}
NamesStats names_stats() noexcept {
  return table().stats();
}

}  // namespace ringmain
