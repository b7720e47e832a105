// Who keeps a copy of all Names, for readers that come when the process is gone? Not for users of
// the library.
#pragma once
#include <cstdint>
#include <string_view>

namespace ringmain::detail {

/// Is told each string as it becomes a Name, those included that are Names already.
class NameMirror {
 public:
  NameMirror() = default;
  NameMirror(const NameMirror&) = delete;
  NameMirror& operator=(const NameMirror&) = delete;
  /// Under the table's lock.
  virtual void add(std::uint32_t id, std::string_view name) noexcept = 0;
  /// Not in a forked child, which leaves the mirrors of its parent alone. Progress: blocking.
  void begin_mirroring() noexcept;
  void end_mirroring() noexcept;

 protected:
  virtual ~NameMirror() = default;

 private:
  friend class NameMirrors;
  NameMirror* next_ = nullptr;
};

}  // namespace ringmain::detail
