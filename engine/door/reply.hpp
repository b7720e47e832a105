// What does a door answer? Text that was made, text that lives for ever, or a file in memory, which
// is sent as it is, with no allocation.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace ringmain::engine::door {

class Reply {
 public:
  Reply() = default;
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;
  ~Reply() { clear(); }

  void say(std::string made) noexcept;
  /// It must live for ever.
  void say_static(std::string_view text) noexcept;
  /// All that the file holds. False: it cannot be read.
  [[nodiscard]] bool show(int fd) noexcept;
  void clear() noexcept;

  [[nodiscard]] std::string_view view() const noexcept { return view_; }

 private:
  std::string text_;
  void* at_ = nullptr;
  std::size_t bytes_ = 0;
  std::string_view view_;
};

}  // namespace ringmain::engine::door
