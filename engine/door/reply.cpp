#include "engine/door/reply.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <utility>

namespace ringmain::engine::door {

void Reply::say(std::string made) noexcept {
  clear();
  text_ = std::move(made);
  view_ = text_;
}

void Reply::say_static(std::string_view text) noexcept {
  clear();
  view_ = text;
}

bool Reply::show(int fd) noexcept {
  clear();
  struct stat about {};
  if (::fstat(fd, &about) != 0 || about.st_size <= 0) return false;
  const auto bytes = static_cast<std::size_t>(about.st_size);
  void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return false;
  at_ = at;
  bytes_ = bytes;
  view_ = {static_cast<const char*>(at), bytes};
  return true;
}

void Reply::clear() noexcept {
  if (at_ != nullptr) (void)::munmap(std::exchange(at_, nullptr), bytes_);
  text_ = std::string();
  view_ = {};
}

}  // namespace ringmain::engine::door
