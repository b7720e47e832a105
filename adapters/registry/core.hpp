// What does the registry consist of? Entries by kind and name, plugins, publishers. Not for users
// of the registry.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/plugins/library.hpp"
#include "adapters/plugins/places.hpp"
#include "adapters/registry.hpp"
#include "adapters/registry/entry.hpp"
#include "adapters/registry/publishers.hpp"

namespace ringmain::registry {

struct Registry::Core {
  using Key = std::pair<ProviderKind, std::string>;

  Result<bool> add(const std::shared_ptr<Entry>& entry, Taken taken);
  std::shared_ptr<Entry> take_out(ProviderKind kind, std::string_view name);
  [[nodiscard]] std::vector<std::shared_ptr<Entry>> entries() const;
  Result<std::shared_ptr<Entry>> find(Registry& self, ProviderKind kind, std::string_view name);
  [[nodiscard]] Error unknown(ProviderKind kind, std::string_view name) const;
  Entry::Loads factory_of(Entry& entry);
  static std::string fault_in(const Entry& entry, const std::optional<std::string_view>& argument);

  /// A manifest that was found, and what became of it.
  struct Plugin {
    std::string text;
    std::shared_ptr<PluginLibrary> library;
    std::vector<std::shared_ptr<Entry>> entries;
    std::vector<std::shared_ptr<Entry>> refused;  // their names are taken, or not valid
  };
  static Plugin take_in(const PluginPlaces::Found& found);
  void register_refused(const std::string& manifest, Plugin& plugin,
                        std::vector<std::string>& trouble);
  void forget(const Plugin& plugin);
  void refresh();
  [[nodiscard]] std::vector<std::string> faults() const;
  Result<bool> unload(std::string_view library);

  /// The object, which keeps its factory and so its plugin alive until after its own end.
  template <class T, class Call>
  Result<std::shared_ptr<T>> open(Registry& self, ProviderKind kind, const Spec& spec, Call call) {
    auto found = find(self, kind, spec.name);
    if (!found) return found.error();
    const std::shared_ptr<Entry> entry = found.value();
    if (const std::string fault = fault_in(*entry, spec.argument); !fault.empty()) {
      return Error{Error::Code::refused, fault};
    }
    entry->opening();
    Result<std::shared_ptr<T>> made = open_loaded<T>(entry, spec, call);
    if (!made) entry->closed();
    entry->opening_over();
    return made;
  }

  mutable std::mutex mutex;  // by_key, plugin_faults
  std::map<Key, std::shared_ptr<Entry>> by_key;
  std::vector<std::string> plugin_faults;
  std::mutex refreshing;                // guards `known`; one refresh at a time
  std::map<std::string, Plugin> known;  // by the manifest's path
  PluginPlaces plugins;
  Publishers publishers;

 private:
  template <class T, class Call>
  Result<std::shared_ptr<T>> open_loaded(const std::shared_ptr<Entry>& entry, const Spec& spec,
                                         Call call) {
    auto factory = factory_of(*entry);
    if (!factory) return factory.error();
    Result<std::unique_ptr<T>> made =
        guarded<T>(*entry, [&] { return call(*factory.value(), spec.argument.value_or("")); });
    if (!made) return made.error();
    if (made.value() == nullptr) {
      return Error{Error::Code::refused, entry->title() + " gave nothing; mend its factory"};
    }
    return std::shared_ptr<T>(made.value().release(),
                              [entry, keep = factory.value()](T* object) noexcept {
                                delete object;
                                entry->closed();
                              });
  }
  template <class T, class F>
  static Result<std::unique_ptr<T>> guarded(const Entry& entry, F make) {
    try {
      return make();
    } catch (const std::exception& thrown) {
      return Error{Error::Code::refused, entry.title() + " could not be opened: " + thrown.what()};
    } catch (...) {
      return Error{Error::Code::refused,
                   entry.title() + " could not be opened: it threw what is no std::exception"};
    }
  }
};

}  // namespace ringmain::registry
