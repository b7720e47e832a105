#include "adapters/flight/document.hpp"

#include "adapters/flight/limits.hpp"

namespace ringmain::flight {
namespace {

/// What is used several times counts each time: texts too, which a small file can have many of.
struct Walked {
  std::size_t values = 0, text_bytes = 0;
};

/// False once there is too much, or it is too deep.
bool walk(const Document& document, const Value& value, std::size_t depth, Walked& sum) {
  if (++sum.values > kValuesMax || depth > kDepthMax) return false;
  if (value.is_text() && (sum.text_bytes += value.length) > kTextBytesMax) return false;
  for (const Value& item : document.items(value)) {
    if (!walk(document, item, depth + 1, sum)) return false;
  }
  return true;
}

}  // namespace

Value Value::of(bool b) noexcept {
  Value made;
  made.kind = Kind::boolean;
  made.boolean = b;
  return made;
}

Value Value::of(std::int64_t number) noexcept {
  Value made;
  made.kind = Kind::whole;
  made.whole = number;
  return made;
}

Value Value::of(double number) noexcept {
  Value made;
  made.kind = Kind::real;
  made.real = number;
  return made;
}

Value Value::of(std::string_view text) noexcept {
  Value made;
  made.kind = Kind::text;
  made.length = static_cast<std::uint32_t>(text.size());
  made.text = text.data();
  return made;
}

std::string_view to_string(Value::Kind kind) noexcept {
  static constexpr std::string_view kNames[] = {"nothing",  "true or false", "a whole number",
                                                "a number", "text",          "a list",
                                                "a tuple",  "a dict"};
  return kNames[static_cast<std::size_t>(kind)];
}

const Value* Document::find(const Value& dict, std::string_view key) const noexcept {
  if (!dict.is_dict()) return nullptr;
  const auto all = items(dict);
  for (std::size_t i = all.size(); i >= 2; i -= 2) {
    if (all[i - 2].is_text() && all[i - 2].str() == key) return &all[i - 1];
  }
  return nullptr;
}

Value Document::make(Value::Kind kind) {
  Value made;
  made.kind = kind;
  made.container = static_cast<std::uint32_t>(containers_.size());
  containers_.emplace_back();
  return made;
}

void Document::set(const Value& dict, std::string_view key, const Value& value) {
  auto& all = items_of(dict);
  for (std::size_t i = all.size(); i >= 2; i -= 2) {
    if (all[i - 2].is_text() && all[i - 2].str() == key) {
      all[i - 1] = value;
      return;
    }
  }
  const Value name = keep(std::string(key));
  all.push_back(name);
  all.push_back(value);
}

Value Document::keep(std::string text) {
  return Value::of(kept_.emplace_back(std::move(text)));
}

std::string Document::fault() const {
  Walked sum;
  if (walk(*this, root, 0, sum)) return "";
  if (sum.text_bytes > kTextBytesMax) {
    return "it holds more than " + std::to_string(kTextBytesMax >> 20) +
           " MiB of text, counting what is used several times";
  }
  if (sum.values > kValuesMax) {
    return "it holds more than " + std::to_string(kValuesMax) +
           " values, counting those that are "
           "used several times";
  }
  return "it nests deeper than " + std::to_string(kDepthMax) + ", or holds itself";
}

}  // namespace ringmain::flight
