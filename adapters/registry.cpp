#include "adapters/registry.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cxxabi.h>
#include <tuple>

#include "adapters/registry/core.hpp"

namespace ringmain::registry {
namespace {

std::string snake_case(std::string_view camel) {
  std::string made;
  for (std::size_t i = 0; i < camel.size(); ++i) {
    const auto upper = [&](std::size_t at) {
      return at < camel.size() && std::isupper(static_cast<unsigned char>(camel[at])) != 0;
    };
    // A word begins at a capital after a small letter, and at the last of several capitals.
    const bool word =
        i > 0 && upper(i) && (!upper(i - 1) || (i + 1 < camel.size() && !upper(i + 1)));
    if (word && made.back() != '_') made += '_';
    made += static_cast<char>(std::tolower(static_cast<unsigned char>(camel[i])));
  }
  return made;
}

/// The loader of a source that nobody opens: it is heard in programs from their start on.
Loader refuses_to_open(const Provider& said) {
  std::string why = said.name +
                    " is heard in programs that are started so: ringmain run --source " +
                    said.name + " --sink … -- COMMAND";
  if (!said.run.hint.empty()) why += ", " + said.run.hint;
  return detail::at_once(SourceFactory(
      [why = std::move(why)](Bus&, std::string_view) -> Result<std::unique_ptr<Source>> {
        return Error{Error::Code::refused, why};
      }));
}

}  // namespace

std::string_view to_string(ProviderKind kind) noexcept {
  switch (kind) {
    case ProviderKind::source:
      return "source";
    case ProviderKind::sink:
      return "sink";
    case ProviderKind::bridge:
      return "bridge";
  }
  return "?";
}

namespace detail {

std::string default_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  std::string name = plain ? plain.get() : type.name();
  name = name.substr(0, name.find('<'));
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find("::", at), name.size());
    parts.push_back(name.substr(at, end - at));
    at = end + 2;
  }
  std::string own = snake_case(parts.back());
  for (const std::string_view role : {"source", "sink", "bridge", "provider"}) {
    // heartbeat::Source, json_lines::Sink: the namespace is the name.
    if (own == role && parts.size() > 1) return snake_case(parts[parts.size() - 2]);
    if (own.size() > role.size() + 1 && own.ends_with("_" + std::string(role))) {
      own.resize(own.size() - role.size() - 1);
      break;
    }
  }
  return own;
}

Error thrown_error(const std::type_info& type, const char* what) {
  try {
    return Error{Error::Code::refused, default_name(type) + " could not be opened: " + what};
  } catch (const std::bad_alloc&) {
    return Error{Error::Code::no_memory, "no memory left"};  // short enough to be kept in place
  }
}

}  // namespace detail

const std::vector<std::string>& hidden_tags() {
  static const auto& tags = *new std::vector<std::string>{"debug", "experimental"};
  return tags;
}

Registry::Registry() : core_(std::make_unique<Core>()) {}
Registry::~Registry() = default;

Registry& Registry::process() {
  static Registry& made = *[] {
    auto* registry = new Registry;
    add_builtin_providers(*registry);
    if (const std::string folder = library_folder(); !folder.empty()) {
      registry->core_->plugins.add_quiet_place(folder + "/ringmain/plugins");
    }
    // A program that runs with another user's rights loads nothing that its caller's environment
    // names.
    if (const char* places = ::secure_getenv("RINGMAIN_PLUGINS")) {
      registry->core_->plugins.add_places(places);
    }
    registry->refresh();
    return registry;
  }();
  return made;
}

Result<bool> Registry::add(Provider provider, Taken taken) {
  if (provider.kind == ProviderKind::source && provider.run.at_launch) {
    provider.load = refuses_to_open(provider);
  }
  if (!provider.load) {
    return Error{
        Error::Code::refused,
        in_quotes(provider.name) + " has no loader; a provider must be able to give a factory"};
  }
  auto added = core_->add(std::make_shared<Entry>(std::move(provider)), taken);
  core_->publishers.publish_queued();
  return added;
}

Result<bool> Registry::remove(ProviderKind kind, std::string_view name) {
  const std::shared_ptr<Entry> gone = core_->take_out(kind, name);
  if (gone == nullptr) return core_->unknown(kind, name);
  core_->publishers.publish_queued();
  gone->wait_idle();
  return true;
}

Result<ProviderInfo> Registry::find(ProviderKind kind, std::string_view name) {
  auto found = core_->find(*this, kind, name);
  if (!found) return found.error();
  return found.value()->info();
}

Result<ProviderInfo> Registry::check(ProviderKind kind, std::string_view text) {
  const Spec spec = Spec::of(text);
  auto found = core_->find(*this, kind, spec.name);
  if (!found) return found.error();
  if (const std::string fault = Core::fault_in(*found.value(), spec.argument); !fault.empty()) {
    return Error{Error::Code::refused, fault};
  }
  return found.value()->info();
}

std::vector<ProviderInfo> Registry::list(const std::vector<std::string>& without) const {
  std::vector<ProviderInfo> all;
  for (const auto& entry : core_->entries()) {
    const auto& tags = entry->provider().tags;
    const bool hidden = std::any_of(tags.begin(), tags.end(), [&](const std::string& tag) {
      return std::find(without.begin(), without.end(), tag) != without.end();
    });
    if (!hidden) all.push_back(entry->info());
  }
  std::sort(all.begin(), all.end(), [](const ProviderInfo& a, const ProviderInfo& b) {
    return std::tie(a.name, a.kind) < std::tie(b.name, b.kind);
  });
  return all;
}

Result<bool> Registry::load(ProviderKind kind, std::string_view name) {
  auto found = core_->find(*this, kind, name);
  if (!found) return found.error();
  auto factory = core_->factory_of(*found.value());
  if (!factory) return factory.error();
  return true;
}

Result<SinkHandle> Registry::open_sink(const Choice<Sink>& choice) {
  if (choice.spec() == nullptr) {
    if (choice.object() == nullptr) return Error{Error::Code::refused, "the sink given is empty"};
    return SinkHandle("sink", choice.object());
  }
  const Spec spec = Spec::of(*choice.spec());
  auto made = core_->open<Sink>(
      *this, ProviderKind::sink, spec,
      [](const Factory& f, auto argument) { return std::get<SinkFactory>(f)(argument); });
  if (!made) return made.error();
  return SinkHandle(std::string(spec.name), std::move(made).value());
}

Result<SinkHandle> attach_sink(Bus& bus, const Choice<Sink>& sink, std::string_view pattern) {
  auto opened = Registry::process().open_sink(sink);
  if (!opened) return opened;
  if (auto attached = opened.value().attach(bus, pattern); !attached) return attached.error();
  return opened;
}

Result<Opened<Source>> Registry::open_source(Bus& bus, const Choice<Source>& choice) {
  if (choice.spec() == nullptr) {
    if (choice.object() == nullptr) return Error{Error::Code::refused, "the source given is empty"};
    return Opened<Source>(choice.object());
  }
  auto made = core_->open<Source>(*this, ProviderKind::source, Spec::of(*choice.spec()),
                                  [&bus](const Factory& f, auto argument) {
                                    return std::get<SourceFactory>(f)(bus, argument);
                                  });
  if (!made) return made.error();
  return Opened<Source>(std::move(made).value());
}

Result<Opened<Bridge>> Registry::open_bridge(Bus& bus, const Choice<Bridge>& choice) {
  if (choice.spec() == nullptr) {
    if (choice.object() == nullptr) return Error{Error::Code::refused, "the bridge given is empty"};
    return Opened<Bridge>(choice.object());
  }
  auto made = core_->open<Bridge>(*this, ProviderKind::bridge, Spec::of(*choice.spec()),
                                  [&bus](const Factory& f, auto argument) {
                                    return std::get<BridgeFactory>(f)(bus, argument);
                                  });
  if (!made) return made.error();
  return Opened<Bridge>(std::move(made).value());
}

void Registry::search(std::string_view places) {
  core_->plugins.add_places(places);
  refresh();
}

void Registry::refresh() {
  core_->refresh();
  core_->publishers.publish_queued();
}

std::vector<std::string> Registry::faults() const {
  return core_->faults();
}

Result<bool> Registry::unload(std::string_view library) {
  return core_->unload(library);
}

Result<bool> Registry::tell(Bus* bus) {
  return core_->publishers.publish_on(bus);
}

}  // namespace ringmain::registry
