#include "adapters/registry/core.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "adapters/did_you_mean.hpp"
#include "adapters/plugin.hpp"
#include "adapters/plugins/library.hpp"

namespace ringmain::registry {
namespace {

bool good_name(std::string_view name) {
  const auto fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= 64 && name.front() != '-' && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), fine);
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string made;
  for (const std::string_view word : words) made += (made.empty() ? "" : ", ") + std::string(word);
  return made;
}

/// A loader that always fails: so the user reads why when the provider is asked for.
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

Result<bool> Registry::Core::add(const std::shared_ptr<Entry>& entry, Taken taken) {
  const Provider& p = entry->provider();
  if (!good_name(p.name)) {
    return Error{Error::Code::refused,
                 in_quotes(p.name) +
                     " cannot be a provider's name; use a-z, 0-9, '_', '-' and '.', 64 at most"};
  }
  const std::lock_guard lock(mutex);
  auto& held = by_key[{p.kind, p.name}];
  const bool replaced = held != nullptr;
  if (replaced && taken == Taken::refuse) {
    const std::string& from = held->provider().from;
    return Error{Error::Code::conflict,
                 "there is a " + held->title() + " already" +
                     (from.empty() ? std::string() : ", from " + from) +
                     "; give this one another name, or replace that one on purpose"};
  }
  held = entry;
  publishers.queue(Registered{Name(p.name), Name(p.from), p.kind, replaced});
  return true;
}

std::shared_ptr<Entry> Registry::Core::take_out(ProviderKind kind, std::string_view name) {
  const std::lock_guard lock(mutex);
  const auto found = by_key.find({kind, std::string(name)});
  if (found == by_key.end()) return nullptr;
  const std::shared_ptr<Entry> gone = found->second;
  by_key.erase(found);
  publishers.queue(Unregistered{Name(name), Name(gone->provider().from), kind});
  return gone;
}

std::vector<std::shared_ptr<Entry>> Registry::Core::entries() const {
  const std::lock_guard lock(mutex);
  std::vector<std::shared_ptr<Entry>> all;
  for (const auto& [key, entry] : by_key) all.push_back(entry);
  return all;
}

Result<std::shared_ptr<Entry>> Registry::Core::find(Registry& self, ProviderKind kind,
                                                    std::string_view name) {
  for (const bool again : {false, true}) {
    {
      const std::lock_guard lock(mutex);
      const auto found = by_key.find({kind, std::string(name)});
      if (found != by_key.end()) return found->second;
    }
    if (again) break;
    self.refresh();  // the provider may have been installed since
  }
  return unknown(kind, name);
}

Error Registry::Core::unknown(ProviderKind kind, std::string_view name) const {
  const std::string what(to_string(kind));
  const auto all = entries();
  std::vector<std::string_view> names;
  for (const auto& entry : all) {
    if (entry->provider().kind == kind) {
      names.push_back(entry->provider().name);
    } else if (entry->provider().name == name) {
      return Error{Error::Code::not_found, "there is no " + what + " " + in_quotes(name) + "; " +
                                               in_quotes(name) + " is a " +
                                               std::string(to_string(entry->provider().kind))};
    }
  }
  std::string sentence = "there is no " + what + " " + in_quotes(name.substr(0, 64));
  if (const std::string nearest = did_you_mean(name, names); !nearest.empty()) {
    sentence += nearest;
  } else {
    sentence += names.empty() ? "; none is registered" : "; there are " + joined(names);
  }
  return Error{Error::Code::not_found, sentence};
}

Entry::Loads Registry::Core::factory_of(Entry& entry) {
  std::optional<std::chrono::nanoseconds> took;
  auto factory = entry.factory(took);
  const Provider& p = entry.provider();
  if (took && factory) {
    publishers.queue(Loaded{Name(p.name), Name(p.from), p.kind, took->count()});
  } else if (took) {
    const std::string_view reason = factory.error().message;
    publishers.queue(LoadFailed{Name(p.name), Name(p.from), p.kind, reason});
  }
  publishers.publish_queued();
  return factory;
}

/// "[MS]" may be left out, "FILE" must be there, "" takes none.
std::string Registry::Core::fault_in(const Entry& entry,
                                     const std::optional<std::string_view>& argument) {
  const Provider& p = entry.provider();
  const std::string name = std::string(to_string(p.kind)) + " " + p.name;
  if (p.argument.empty() && argument) return name + " takes no argument: write " + p.name;
  if (p.argument_fault && argument && !argument->empty()) return p.argument_fault(*argument);
  if (p.argument.empty() || p.argument.front() == '[') return "";
  if (argument && !argument->empty()) return "";
  return name + " wants " + (p.argument == "FILE" ? "a file" : "an argument") + ": " + p.name +
         ":" + p.argument;
}

// --- how plugins come in, and go out again ---

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
    if (held == by_key.end() || held->second != entry) continue;  // it was replaced
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
  // Destroyed last: the last reference unmaps the library, with no lock held.
  std::vector<std::shared_ptr<const Factory>> gone;
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
