#include <array>
#include <cstddef>
#include <vector>

#include "adapters/sources/nvtx/nvtx_publish.hpp"
#include "adapters/sources/nvtx/nvtx_source.hpp"

namespace ringmain::nvtx {
namespace {

constexpr abi::Module kModules[] = {abi::kCore, abi::kCore2, abi::kSync};

/// The function pointers of one module of one copy; an older copy has fewer, or none.
struct Table {
  abi::Module module;
  abi::Function** entries = nullptr;
  unsigned count = 0;

  [[nodiscard]] std::vector<abi::Function> read() const {
    std::vector<abi::Function> functions(count, nullptr);
    for (unsigned id = 1; id < count; ++id) {
      if (entries[id] != nullptr) functions[id] = *entries[id];
    }
    return functions;
  }
};

std::vector<Table> tables_of(abi::GetExportTable get) {
  std::vector<Table> tables;
  const auto* callbacks = static_cast<const abi::Callbacks*>(get(abi::kCallbacks));
  if (callbacks == nullptr || callbacks->struct_bytes < sizeof *callbacks) return tables;
  for (const abi::Module module : kModules) {
    Table table{module};
    if (callbacks->table_of_module(module, &table.entries, &table.count) == 0) continue;
    if (table.entries != nullptr) tables.push_back(table);
  }
  return tables;
}

/// What stood in the table before the chained tool wrote to it is the copy's own way of loading
/// this library, and no tool's function: to call it would load this library again.
void take(const Table& table, const std::vector<abi::Function>& before,
          const std::vector<abi::Function>& after, bool chained) {
  for (unsigned id = 1; id < table.count; ++id) {
    if (table.entries[id] == nullptr) continue;
    const bool theirs = chained && after[id] != before[id] && after[id] != nullptr;
    const Ours ours = our_function(table.module, id);
    if (theirs && ours.function != nullptr) set_next(table.module, id, after[id]);
    if (ours.function != nullptr && (theirs || !ours.forwards_only)) {
      *table.entries[id] = ours.function;
    } else if (!theirs) {
      *table.entries[id] = before[id];
    }
  }
}

}  // namespace

Result<bool> attach(Bus& bus, abi::GetExportTable get, abi::Initialize chained) {
  const std::vector<Table> tables = tables_of(get);
  if (tables.empty()) {
    return Error{Error::Code::not_found,
                 "the program's NVTX shows no calls: it is older than version 3"};
  }
  std::vector<std::vector<abi::Function>> before;
  for (const Table& table : tables) before.push_back(table.read());
  if (const auto published = publish_on(bus); !published) return published.error();
  const bool works = chained != nullptr && chained(get) != 0;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    take(tables[i], before[i], tables[i].read(), works);
  }
  return true;
}

}  // namespace ringmain::nvtx
