#include "adapters/sources/nvtx/nvtx_names.hpp"

#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace ringmain::nvtx {
namespace {

constexpr std::uint64_t word_of(std::uint32_t category, std::uint32_t name) {
  return std::uint64_t{category} << 32 | name;
}

/// Never destroyed: a program may call NVTX until it is gone.
struct Kept {
  const pid_t pid = ::getpid();
  std::mutex mutex;
  std::map<std::pair<std::string, void*>, std::unique_ptr<Domain>> domains;
  std::map<std::tuple<const Domain*, std::string, void*>, std::unique_ptr<Registered>> strings;
};
Kept& kept() {
  static Kept& all = *new Kept;
  return all;
}

}  // namespace

void Categories::name(std::uint32_t category, Name name) noexcept {
  if (category == 0) return;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    auto& word = words_[(category + i) % words_.size()];
    const std::uint64_t found = word;
    if (found == 0 && ++used_ == words_.size()) {
      --used_;  // one stays free, where the search for what is not there ends
      return;
    }
    if (found == 0 || found >> 32 == category) {
      word = word_of(category, name.id());
      return;
    }
  }
}

Name Categories::of(std::uint32_t category) const noexcept {
  if (category == 0) return {};
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const std::uint64_t word = words_[(category + i) % words_.size()];
    if (word == 0) return {};
    if (word >> 32 == category) return std::bit_cast<Name>(static_cast<std::uint32_t>(word));
  }
  return {};
}

Domain& domain_of(void* handle) noexcept {
  static Domain& by_default = *new Domain;
  return handle == nullptr ? by_default : *static_cast<Domain*>(handle);
}

Domain* create_domain(std::string_view name, void* theirs) noexcept try {
  Kept& all = kept();
  if (::getpid() != all.pid) return nullptr;
  const std::lock_guard lock(all.mutex);
  auto& domain = all.domains[{std::string(name), theirs}];
  if (domain == nullptr) {
    domain = std::make_unique<Domain>();
    domain->name = Name(name);
    domain->theirs = theirs;
  }
  return domain.get();
} catch (const std::bad_alloc&) {
  return nullptr;
}

Registered* register_string(Domain& domain, std::string_view text, void* theirs) noexcept try {
  Kept& all = kept();
  if (::getpid() != all.pid) return nullptr;
  const std::lock_guard lock(all.mutex);
  auto& string = all.strings[{&domain, std::string(text), theirs}];
  if (string == nullptr) string = std::make_unique<Registered>(Registered{text, theirs});
  return string.get();
} catch (const std::bad_alloc&) {
  return nullptr;
}

void name_category(Domain& domain, std::uint32_t category, std::string_view name) noexcept {
  Kept& all = kept();
  if (::getpid() != all.pid) return;
  const Name interned(name);
  const std::lock_guard lock(all.mutex);
  domain.categories.name(category, interned);
}

std::string_view narrow(const wchar_t* text, std::array<char, 256>& to) noexcept {
  std::size_t size = 0;
  const auto put = [&](std::uint32_t byte) { to[size++] = static_cast<char>(byte); };
  for (; *text != L'\0' && size + 4 <= to.size(); ++text) {
    auto c = static_cast<std::uint32_t>(*text);
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xc0 | c >> 6);
      put(0x80 | (c & 0x3f));
    } else {
      if (c < 0x10000) {
        put(0xe0 | c >> 12);
      } else {
        put(0xf0 | c >> 18);
        put(0x80 | (c >> 12 & 0x3f));
      }
      put(0x80 | (c >> 6 & 0x3f));
      put(0x80 | (c & 0x3f));
    }
  }
  return {to.data(), size};
}

}  // namespace ringmain::nvtx
