// What do the handles mean that a program gets from NVTX? Domains, their categories and their
// registered strings.
//
// They are made under a lock and never freed, because a program may use a handle in one thread
// while it destroys it in another. The same name twice gives the same handle. Reading takes no
// lock.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "events/nvtx.hpp"

namespace ringmain::nvtx {

/// The names of a domain's categories. The first 255 that are named have room.
class Categories {
 public:
  /// Threads: one at a time.
  void name(std::uint32_t category, Name name) noexcept;
  /// Name{} if it has none. Threads: any. Progress: wait-free.
  [[nodiscard]] Name of(std::uint32_t category) const noexcept;

 private:
  // A word holds a category and its name, so a reader never sees one without the other. 0: free.
  std::array<std::atomic<std::uint64_t>, 256> words_{};
  std::size_t used_ = 0;
};

struct Domain {
  Name name;
  void* theirs = nullptr;  // the chained tool's handle, if there is a tool
  Categories categories;
};
struct Registered {
  Message text;
  void* theirs = nullptr;
};

/// The domain of a program's handle; nullptr is the default domain.
[[nodiscard]] Domain& domain_of(void* handle) noexcept;

/// nullptr if there is no memory, or in a forked child, where the lock may be held for ever.
[[nodiscard]] Domain* create_domain(std::string_view name, void* theirs) noexcept;
[[nodiscard]] Registered* register_string(Domain& domain, std::string_view text,
                                          void* theirs) noexcept;
void name_category(Domain& domain, std::uint32_t category, std::string_view name) noexcept;

/// `text` as UTF-8 in `to`, up to its end or until `to` is full. Invalid characters become U+FFFD.
[[nodiscard]] std::string_view narrow(const wchar_t* text, std::array<char, 256>& to) noexcept;

}  // namespace ringmain::nvtx
