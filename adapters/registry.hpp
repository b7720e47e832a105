// Which sources, sinks and bridges are there, and how are they opened by name?
//
// Listing never runs a provider's code. A provider is loaded at its first use, once however many
// threads ask, and again after a failure. Plugins are found by their manifests and refreshed on
// demand.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "../bus/bus.hpp"

#include "did_you_mean.hpp"
#include "library_folder.hpp"
#include "provider.hpp"
#include "sink_handle.hpp"

namespace ringmain::registry {

/// What is known of a provider without loading it.
struct ProviderInfo {
  enum class State : std::uint8_t { not_loaded, loaded, failed };
  ProviderKind kind = ProviderKind::sink;
  std::string name;
  std::vector<std::string> tags;
  std::string summary;
  std::string argument;
  std::string from;  // the plugin's library; "" for what is compiled in
  State state = State::not_loaded;
  std::string fault;         // why the last load failed
  std::uint32_t opened = 0;  // objects of it that are open
  RunNeeds run;
};

/// A list leaves providers with one of these tags out, unless it is told otherwise.
/// Progress: wait-free after the first call.
[[nodiscard]] const std::vector<std::string>& hidden_tags();

/// Keeps an opened object alive, and the plugin that it came from.
/// Progress: wait-free, but for the end of what was opened.
template <class T>
class [[nodiscard]] Opened {
 public:
  Opened() = default;
  explicit Opened(std::shared_ptr<T> object) : object_(std::move(object)) {}
  T* operator->() const noexcept { return object_.get(); }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  void reset() noexcept { object_.reset(); }

 private:
  std::shared_ptr<T> object_;
};

/// What a user chooses: "name", "name:argument", or an object, which is taken as it is.
/// Progress: wait-free.
template <class T>
class Choice {
 public:
  Choice(std::string_view spec) : said_(std::string(spec)) {}  // NOLINT: it is what was typed
  Choice(const std::string& spec) : said_(spec) {}             // NOLINT
  Choice(const char* spec) : said_(std::string(spec)) {}       // NOLINT
  /// A shared_ptr or a unique_ptr of T, or of a class that derives from it.
  template <std::convertible_to<std::shared_ptr<T>> P>
  Choice(P object) : said_(std::shared_ptr<T>(std::move(object))) {}  // NOLINT
  [[nodiscard]] const std::string* spec() const noexcept {
    return std::get_if<std::string>(&said_);
  }
  [[nodiscard]] std::shared_ptr<T> object() const {
    const auto* object = std::get_if<std::shared_ptr<T>>(&said_);
    return object == nullptr ? nullptr : *object;
  }

 private:
  std::variant<std::string, std::shared_ptr<T>> said_;
};

/// The parts of "name:argument"; no argument where there is no colon. Progress: wait-free.
struct Spec {
  std::string_view name;
  std::optional<std::string_view> argument;
  static Spec of(std::string_view text) noexcept {
    const std::size_t colon = text.find(':');
    if (colon == text.npos) return {text, std::nullopt};
    return {text.substr(0, colon), text.substr(colon + 1)};
  }
};

/// Threads: any; loaders and factories may call back. An opened object must not outlive the bus
/// that it was opened with; it may outlive the registry. Progress: blocking, all of it.
class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// The process's registry: what comes with ringmain, and the plugins of RINGMAIN_PLUGINS and of
  /// the folder ringmain/plugins beside the library. Made at the first call, never destroyed.
  static Registry& process();

  enum class Taken : std::uint8_t { refuse, replace };
  /// conflict: the name is taken and `taken` is refuse. refused: no loader, or a name that is not
  /// made of a-z, 0-9, '_', '-' and '.'. A replaced provider's open objects live on.
  Result<bool> add(Provider provider, Taken taken = Taken::refuse);
  /// When it returns, no loader and no factory of that provider is running, unless it is called by
  /// one. not_found: there is none.
  Result<bool> remove(ProviderKind kind, std::string_view name);

  /// not_found: the message names the nearest provider, or all. Looks for new plugins before it
  /// gives up.
  Result<ProviderInfo> find(ProviderKind kind, std::string_view name);
  /// Sorted by name, then kind, without those that have one of these tags. Loads nothing.
  [[nodiscard]] std::vector<ProviderInfo> list(
      const std::vector<std::string>& without = hidden_tags()) const;
  /// Is this a provider's name, with an argument as that provider wants it? Loads nothing.
  Result<ProviderInfo> check(ProviderKind kind, std::string_view spec);

  Result<SinkHandle> open_sink(const Choice<Sink>& choice);
  Result<Opened<Source>> open_source(Bus& bus, const Choice<Source>& choice);
  Result<Opened<Bridge>> open_bridge(Bus& bus, const Choice<Bridge>& choice);
  /// Loads without opening.
  Result<bool> load(ProviderKind kind, std::string_view name);

  /// Adds places where plugins are: folders, manifests or libraries, with ':' between them. Reads
  /// manifests and loads nothing.
  void search(std::string_view places);
  /// Reads the places again: new plugins are added; those that are gone and not loaded are
  /// forgotten.
  void refresh();
  /// One sentence for each manifest that could not be used.
  [[nodiscard]] std::vector<std::string> faults() const;
  /// Unloads the plugin with that library. conflict: objects of it are open. not_found: no such
  /// plugin. Its providers stay registered and are loaded again at their next use.
  Result<bool> unload(std::string_view library);

  /// From now on publishes registry.* on that bus, which must live until tell() names another;
  /// nullptr: on none.
  Result<bool> tell(Bus* bus);

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

/// Opens a sink of the process's registry, "json_lines:out.jsonl", or takes an object. The sink
/// hears the channels that match, present and future, until the handle is destroyed:
/// SinkHandle::attach(). Progress: blocking.
Result<SinkHandle> attach_sink(Bus& bus, const Choice<Sink>& sink, std::string_view pattern = ">");

/// Adds what comes with ringmain. Progress: blocking.
void add_builtin_providers(Registry& registry);

}  // namespace ringmain::registry
