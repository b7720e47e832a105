#include "adapters/flight/convert.hpp"

#include <charconv>

#include "adapters/flight/document_writer.hpp"

namespace ringmain::flight {
namespace {

using Kind = Value::Kind;

void shape_status(Document& document, const Value& status, DumpFormat format) {
  // A copy of the handles: the texts that are kept meanwhile may move the containers.
  const auto groups = document.items(status);
  for (std::size_t g = 1; g < groups.size() && status.is_dict(); g += 2) {
    if (!groups[g].is_dict()) continue;
    auto& items = document.items_of(groups[g]);
    for (std::size_t i = 1; i < items.size(); i += 2) {
      Value& value = items[i];
      if (format == DumpFormat::json && value.is_whole()) {
        value = document.keep(std::to_string(value.whole));
      } else if (format == DumpFormat::pickle && value.is_text()) {
        std::int64_t number = 0;
        const std::string_view text = value.str();
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error == std::errc() && end == text.data() + text.size()) value = Value::of(number);
      }
    }
  }
}

void shape_entry(Document& document, const Value& entry, DumpFormat format) {
  if (!entry.is_dict()) return;
  auto& items = document.items_of(entry);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    if (!items[i].is_text()) continue;
    const std::string_view key = items[i].str();
    Value& value = items[i + 1];
    if (key == "time_discovered_started_ns" || key == "time_discovered_completed_ns") {
      if (format == DumpFormat::json && value.kind == Kind::none)
        value = Value::of(std::int64_t{0});
      if (format == DumpFormat::pickle && value.is_whole() && value.whole == 0) value = {};
    } else if (key == "process_group" && value.is_list()) {
      value.kind = format == DumpFormat::pickle ? Kind::tuple : Kind::list;
    }
  }
}

}  // namespace

void shape_for(Document& document, DumpFormat format) {
  const Value root = document.root;
  if (!root.is_dict()) return;
  if (const Value* status = document.find(root, "pg_status")) {
    shape_status(document, Value(*status), format);
  }
  const Value* entries = document.find(root, "entries");
  if (entries == nullptr) {
    if (format == DumpFormat::pickle) document.set(root, "entries", document.make(Kind::list));
    return;
  }
  const Value list = *entries;
  for (std::size_t i = 0; i < document.items(list).size(); ++i) {
    shape_entry(document, Value(document.items(list)[i]), format);
  }
  if (format != DumpFormat::json || !list.is_list() || !document.items(list).empty()) return;
  auto& items = document.items_of(root);  // PyTorch's JSON has no key for no entries
  for (std::size_t i = 0; i + 1 < items.size();) {
    if (items[i].is_text() && items[i].str() == "entries") {
      items.erase(items.begin() + static_cast<long>(i), items.begin() + static_cast<long>(i) + 2);
    } else {
      i += 2;
    }
  }
}

std::string write_document(const Document& document, DumpFormat format) {
  return format == DumpFormat::pickle ? to_pickle(document) : to_json(document);
}

}  // namespace ringmain::flight
