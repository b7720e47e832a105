// How do plugins come into the registry, and out of it again?
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "adapters/plugin.hpp"
#include "adapters/plugins/library.hpp"
#include "adapters/registry/core.hpp"

namespace ringmain::registry {
namespace {

/// A loader that knows that it cannot: so the reason is found where the provider is looked for.
Loader refuses(std::string why) {
  return [why = std::move(why)]() -> Result<Factory> { return Error{Error::Code::refused, why}; };
}

Loader loads_from(std::shared_ptr<PluginLibrary> library, const Provider& said) {
  return [library = std::move(library), kind = said.kind, name = said.name] {
    return library->factory(kind, name);
  };
}

std::string abi_fault(const PluginPlaces::Found& found) {
  if (found.manifest.abi == plugin::kAbi) return "";
  return "the plugin " + found.library + " cannot be loaded: it speaks plugin ABI " +
         std::to_string(found.manifest.abi) + " and this ringmain " + std::to_string(plugin::kAbi) +
         "; build it against this ringmain";
}

}  // namespace

Registry::Core::Plugin Registry::Core::take_in(const PluginPlaces::Found& found) {
  Plugin made;
  made.text = found.text;
  made.library = std::make_shared<PluginLibrary>(found.library, found.manifest.sha256);
  const std::string fault = abi_fault(found);
  for (Provider said : found.manifest.providers) {
    said.from = found.library;
    said.load = fault.empty() ? loads_from(made.library, said) : refuses(fault);
    made.refused.push_back(std::make_shared<Entry>(std::move(said)));
  }
  return made;
}

void Registry::Core::register_refused(const std::string& manifest, Plugin& plugin,
                                      std::vector<std::string>& trouble) {
  std::erase_if(plugin.refused, [&](const std::shared_ptr<Entry>& entry) {
    const auto added = add(entry, Taken::refuse);
    if (added) {
      plugin.entries.push_back(entry);
      return true;
    }
    trouble.push_back("the manifest " + manifest + " cannot be used: " + added.error().message);
    return false;
  });
}

void Registry::Core::forget(const Plugin& plugin) {
  for (const auto& entry : plugin.entries) {
    const Provider& p = entry->provider();
    const std::lock_guard lock(mutex);
    const auto held = by_key.find({p.kind, p.name});
    if (held == by_key.end() || held->second != entry) continue;  // replaced, on purpose
    by_key.erase(held);
    publishers.queue(Unregistered{Name(p.name), Name(p.from), p.kind});
  }
}

void Registry::Core::refresh() {
  const std::lock_guard refresh_lock(refreshing);
  PluginPlaces::Scan scan = plugins.scan();
  std::set<std::string> there;
  for (const auto& found : scan.found) there.insert(found.path);
  const auto keep = [](const Plugin& plugin) { return plugin.library->loaded(); };
  for (auto at = known.begin(); at != known.end();) {
    const auto now = std::find_if(scan.found.begin(), scan.found.end(),
                                  [&](const auto& found) { return found.path == at->first; });
    const bool same = now != scan.found.end() && now->text == at->second.text;
    if (same || keep(at->second)) {
      ++at;
      continue;
    }
    forget(at->second);
    at = known.erase(at);
  }
  for (const auto& found : scan.found) {
    const auto [at, is_new] = known.try_emplace(found.path);
    if (is_new) at->second = take_in(found);
    register_refused(found.path, at->second, scan.faults);
  }
  const std::lock_guard lock(mutex);
  plugin_faults = std::move(scan.faults);
}

std::vector<std::string> Registry::Core::faults() const {
  const std::lock_guard lock(mutex);
  return plugin_faults;
}

Result<bool> Registry::Core::unload(std::string_view library) {
  std::vector<std::shared_ptr<const Factory>>
      gone;  // the last of them unmaps it, with no lock held
  const std::lock_guard refresh_lock(refreshing);
  const auto plugin = std::find_if(known.begin(), known.end(), [&](const auto& one) {
    return one.second.library->path() == library || one.first == library;
  });
  if (plugin == known.end()) {
    return Error{Error::Code::not_found, "there is no plugin " + std::string(library) +
                                             "; the list of providers names their libraries"};
  }
  std::vector<std::unique_lock<std::mutex>> locks;
  std::uint32_t in_use = 0;
  for (const auto& entry : plugin->second.entries) {
    locks.push_back(entry->lock());
    in_use += entry->in_use_locked();
  }
  if (in_use > 0) {
    return Error{Error::Code::conflict, "the plugin " + std::string(library) + " is in use by " +
                                            std::to_string(in_use) +
                                            (in_use == 1 ? " object" : " objects") +
                                            " of it; close what was opened, then unload it"};
  }
  for (const auto& entry : plugin->second.entries) gone.push_back(entry->take_factory_locked());
  locks.clear();
  plugin->second.library->let_go();
  return true;
}

}  // namespace ringmain::registry
