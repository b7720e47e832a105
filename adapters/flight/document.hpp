// What does a file say, before anybody asks what it means? Nothing, truth, numbers, text, lists and
// dicts: what JSON and a pickle of data have in common, and no more.
//
// A pickle may use one list in several places, so values are handles, and a list is kept once.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmain::flight {

/// A number, a text, or the handle of a container of its Document. 16 bytes.
struct Value {
  enum class Kind : std::uint8_t { none, boolean, whole, real, text, list, tuple, dict };

  Kind kind = Kind::none;
  std::uint32_t length = 0;  // of a text, in bytes
  union {
    std::int64_t whole = 0;
    double real;
    bool boolean;
    const char* text;
    std::uint32_t container;
  };

  [[nodiscard]] bool is_text() const noexcept { return kind == Kind::text; }
  [[nodiscard]] bool is_whole() const noexcept { return kind == Kind::whole; }
  [[nodiscard]] bool is_list() const noexcept { return kind == Kind::list || kind == Kind::tuple; }
  [[nodiscard]] bool is_dict() const noexcept { return kind == Kind::dict; }
  [[nodiscard]] bool is_container() const noexcept { return kind >= Kind::list; }
  [[nodiscard]] std::string_view str() const noexcept { return {text, length}; }

  static Value of(bool b) noexcept;
  static Value of(std::int64_t number) noexcept;
  static Value of(double number) noexcept;
  /// `text` must live as long as the Document.
  static Value of(std::string_view text) noexcept;
};
static_assert(sizeof(Value) == 16);

/// "a whole number", "text", "a list"
[[nodiscard]] std::string_view to_string(Value::Kind kind) noexcept;

/// All values of one file. Move-only; its values stay valid in the one that it is moved to.
/// Threads: one at a time.
class Document {
 public:
  Document() = default;
  Document(Document&&) noexcept = default;
  Document& operator=(Document&&) noexcept = default;

  Value root;

  /// The items of a list; of a dict keys and values in turn. Empty for what is no container.
  [[nodiscard]] std::span<const Value> items(const Value& container) const noexcept {
    if (!container.is_container()) return {};
    return containers_[container.container];
  }
  /// What a dict has by this name; of several, the last, as in Python. nullptr if there is none.
  [[nodiscard]] const Value* find(const Value& dict, std::string_view key) const noexcept;

  /// An empty container of this kind.
  [[nodiscard]] Value make(Value::Kind kind);
  [[nodiscard]] std::size_t containers() const noexcept { return containers_.size(); }
  [[nodiscard]] std::vector<Value>& items_of(const Value& container) noexcept {
    return containers_[container.container];
  }
  /// Sets an item of a dict, the last by this name if it is there.
  void set(const Value& dict, std::string_view key, const Value& value);
  /// A text that the document keeps.
  [[nodiscard]] Value keep(std::string text);
  /// Keeps what texts lie in.
  void hold(std::shared_ptr<const void> memory) { held_ = std::move(memory); }

  /// Why it cannot be walked through: too deep, too large, or a list within itself. "" if it can.
  [[nodiscard]] std::string fault() const;

 private:
  std::vector<std::vector<Value>> containers_;
  std::deque<std::string> kept_;
  std::shared_ptr<const void> held_;
};

}  // namespace ringmain::flight
