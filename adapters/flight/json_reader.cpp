#include "adapters/flight/json_reader.hpp"

#include <simdjson.h>
#include <utility>

#include "adapters/flight/limits.hpp"
#include "adapters/flight/pickle_reader.hpp"

namespace ringmain::flight {
namespace {

namespace dom = simdjson::dom;

/// Copies what simdjson read; false if there is too much of it.
class JsonCopy {
 public:
  explicit JsonCopy(Document& to) : to_(to) {}

  bool copy(const dom::element& from, Value& made, std::size_t depth) {
    if (depth > kDepthMax || ++values_ > kValuesMax) return false;
    switch (from.type()) {
      case dom::element_type::ARRAY:
        return copy_list(from.get_array().value_unsafe(), made, depth);
      case dom::element_type::OBJECT:
        return copy_dict(from.get_object().value_unsafe(), made, depth);
      case dom::element_type::INT64:
        made = Value::of(from.get_int64().value_unsafe());
        return true;
      case dom::element_type::UINT64:
        made = Value::of(static_cast<std::int64_t>(from.get_uint64().value_unsafe()));
        return true;
      case dom::element_type::DOUBLE:
        made = Value::of(from.get_double().value_unsafe());
        return true;
      case dom::element_type::STRING:
        made = Value::of(from.get_string().value_unsafe());
        return true;
      case dom::element_type::BOOL:
        made = Value::of(from.get_bool().value_unsafe());
        return true;
      case dom::element_type::NULL_VALUE:
        made = {};
        return true;
    }
    return false;
  }

 private:
  bool copy_list(const dom::array& from, Value& made, std::size_t depth) {
    if (to_.containers() >= kContainersMax) return false;
    made = to_.make(Value::Kind::list);
    std::vector<Value> items;
    for (const dom::element item : from) {
      if (!copy(item, items.emplace_back(), depth + 1)) return false;
    }
    to_.items_of(made) = std::move(items);
    return true;
  }

  bool copy_dict(const dom::object& from, Value& made, std::size_t depth) {
    if (to_.containers() >= kContainersMax) return false;
    made = to_.make(Value::Kind::dict);
    std::vector<Value> items;
    for (const auto field : from) {
      items.push_back(Value::of(field.key));
      if (!copy(field.value, items.emplace_back(), depth + 1)) return false;
    }
    to_.items_of(made) = std::move(items);
    return true;
  }

  Document& to_;
  std::size_t values_ = 0;
};

Error no_dump(std::string why) {
  return {Error::Code::refused, std::move(why)};
}

}  // namespace

Result<Document> read_json(std::string bytes) {
  if (bytes.size() > kFileBytesMax) {
    return no_dump("it is larger than " + std::to_string(kFileBytesMax >> 20) + " MiB");
  }
  const auto parser = std::make_shared<dom::parser>(kFileBytesMax + simdjson::SIMDJSON_PADDING);
  dom::element root;
  const simdjson::padded_string padded(bytes);
  bytes = {};
  if (const auto error = parser->parse(padded).get(root)) {
    return no_dump(std::string("it is no whole JSON: ") + simdjson::error_message(error));
  }
  Document document;
  if (!JsonCopy(document).copy(root, document.root, 0)) {
    return no_dump("it nests deeper than " + std::to_string(kDepthMax) +
                   ", or holds too many values");
  }
  document.hold(parser);  // which texts lie in
  return document;
}

bool begins_like_a_dump(std::string_view bytes) noexcept {
  if (bytes.starts_with('\x80')) return true;
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != bytes.npos && bytes[first] == '{';
}

Result<Document> read_document(std::string bytes) {
  if (bytes.empty()) return no_dump("it is empty");
  if (!begins_like_a_dump(bytes)) {
    return no_dump("it begins neither as a pickle of protocol 2 or later nor as a JSON object");
  }
  if (bytes.front() == '\x80') return read_pickle(std::move(bytes));
  return read_json(std::move(bytes));
}

}  // namespace ringmain::flight
