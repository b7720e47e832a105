// Where does this NCCL have what its profiler front end looks at? As nccl_layout.py found it in the
// library's own DWARF.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ringmain::nccl_conformance {

class Layout {
 public:
  /// Reads what nccl_layout.py printed. Throws std::runtime_error if the file cannot be read.
  explicit Layout(const std::string& path);

  /// Throws std::runtime_error, which names what is missing.
  [[nodiscard]] std::size_t size(const std::string& type) const { return of("size " + type); }
  [[nodiscard]] std::size_t member(const std::string& name) const { return of("member " + name); }
  [[nodiscard]] std::size_t value(const std::string& name) const { return of("value " + name); }
  [[nodiscard]] std::size_t thread(const std::string& name) const { return of("thread " + name); }
  [[nodiscard]] std::optional<std::size_t> symbol(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& member) const {
    return found_.contains("member " + member);
  }

 private:
  [[nodiscard]] std::size_t of(const std::string& key) const;

  std::map<std::string, std::size_t> found_;
};

/// One of NCCL's structures, in memory of ours that begins zeroed.
class Structure {
 public:
  Structure(const Layout& layout, std::string type)
      : layout_(layout), type_(std::move(type)), bytes_(layout.size(type_)) {}

  /// A member of a structure somewhere else.
  static void* at(void* base, std::size_t offset) { return static_cast<std::byte*>(base) + offset; }

  template <class T>
  void set(const std::string& member, T value) {
    std::memcpy(at(bytes_.data(), layout_.member(type_ + "." + member)), &value, sizeof(value));
  }
  /// Leaves out a member that this release has not.
  template <class T>
  void set_if_there(const std::string& member, T value) {
    if (layout_.has(type_ + "." + member)) set(member, value);
  }
  template <class T>
  [[nodiscard]] T get(const std::string& member) const {
    T value;
    std::memcpy(&value, bytes_.data() + layout_.member(type_ + "." + member), sizeof(value));
    return value;
  }
  [[nodiscard]] void* address() noexcept { return bytes_.data(); }

 private:
  const Layout& layout_;
  const std::string type_;
  std::vector<std::byte> bytes_;
};

}  // namespace ringmain::nccl_conformance
