// Where do bytes go that are written one after the other, in memory of a fixed size?
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace ringmain::flight {

/// Gathers bytes, and has them taken whenever its room is full, and at flush().
class ByteSink {
 public:
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;

  ByteSink& operator+=(char byte) {
    if (size_ == bytes_.size()) flush();
    bytes_[size_++] = byte;
    return *this;
  }
  ByteSink& operator+=(std::string_view bytes) { return append(bytes); }
  ByteSink& append(std::string_view bytes) {
    while (!bytes.empty()) {
      if (size_ == bytes_.size()) flush();
      const std::size_t some = std::min(bytes.size(), bytes_.size() - size_);
      bytes.copy(bytes_.data() + size_, some);
      size_ += some;
      bytes.remove_prefix(some);
    }
    return *this;
  }
  ByteSink& append(const char* first, const char* last) {
    return append({first, static_cast<std::size_t>(last - first)});
  }
  void flush() {
    take({bytes_.data(), size_});
    size_ = 0;
  }

 protected:
  ByteSink() noexcept {}  // its room is not touched before it is used
  ~ByteSink() = default;
  virtual void take(std::string_view bytes) = 0;

 private:
  std::size_t size_ = 0;
  std::array<char, 16384> bytes_;
};

/// How many would there be?
class CountingSink final : public ByteSink {
 public:
  std::size_t bytes = 0;  // that were taken

 private:
  void take(std::string_view some) override { bytes += some.size(); }
};

/// Throws std::bad_alloc.
class StringSink final : public ByteSink {
 public:
  std::string text;  // what was taken

 private:
  void take(std::string_view some) override { text += some; }
};

}  // namespace ringmain::flight
