// What is a provider? A source, a sink or a bridge that users ask for by its name.
//
// A provider is a name, a few words about it, and a loader that gives a factory at the first use.
// To add a sink, derive from Sink and call `registry.add(sink_provider<MySink>())`; a plugin says
// the same in a manifest and a table (adapters/plugin.hpp).
//
// Progress: the functions here touch nothing that is shared and are wait-free.
#pragma once
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#include "../bus/bus.hpp"

#include "sink.hpp"

namespace ringmain::registry {

enum class ProviderKind : std::uint8_t { source, sink, bridge };
[[nodiscard]] std::string_view to_string(ProviderKind kind) noexcept;

/// Publishes on the bus that it was opened with until it is destroyed.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;
};

/// Carries events between the bus that it was opened with and somewhere else until it is destroyed.
class Bridge {
 public:
  Bridge() = default;
  Bridge(const Bridge&) = delete;
  Bridge& operator=(const Bridge&) = delete;
  virtual ~Bridge() = default;
  /// An Error if an event that was to be carried is lost. Progress: may be blocking.
  virtual Result<bool> close() { return true; }
};

/// `argument` is what stands after the colon of "json_lines:out.jsonl"; "" where there is none.
using SourceFactory = std::function<Result<std::unique_ptr<Source>>(Bus&, std::string_view)>;
using SinkFactory = std::function<Result<std::unique_ptr<Sink>>(std::string_view)>;
using BridgeFactory = std::function<Result<std::unique_ptr<Bridge>>(Bus&, std::string_view)>;
using Factory = std::variant<SourceFactory, SinkFactory, BridgeFactory>;
template <ProviderKind kKind>
using FactoryOf = std::variant_alternative_t<static_cast<std::size_t>(kKind), Factory>;
// In the order of the kinds: a factory's index says of which it is.
static_assert(std::same_as<FactoryOf<ProviderKind::source>, SourceFactory> &&
              std::same_as<FactoryOf<ProviderKind::sink>, SinkFactory> &&
              std::same_as<FactoryOf<ProviderKind::bridge>, BridgeFactory>);

/// Gives the factory. Called at the first use; after a failure again at the next use.
/// Progress: may be blocking, as what the factory does.
using Loader = std::function<Result<Factory>()>;

/// One variable that a source needs in the environment of a program that it watches.
struct EnvironmentEdit {
  enum class How : std::uint8_t {
    set,     // whatever was there is replaced
    prepend  // to a list with ':' between its parts
  };
  std::string variable;
  std::string value;  // "{libdir}" stands for the folder of ringmain's libraries
  How how = How::set;
  std::string kept_as{};  // set: the variable that keeps an earlier value, so that tools can chain
};

/// A library that hears one kind of what a source is for; built only where that kind is installed.
struct Watcher {
  std::string watches;  // "Open MPI"
  std::string library;  // below {libdir}
  std::string package;  // Debian's, which it is built with
};

/// What `ringmain run --source NAME -- command` has to do.
struct RunNeeds {
  bool in_process = false;  // opened by libringmain_run.so in every process of the command
  std::vector<EnvironmentEdit> environment{};
  std::string refused{};   // not "": it cannot watch a command, and this sentence says why
  bool at_launch = false;  // hears only what `ringmain run` starts; opening it is refused
  std::string hint{};      // at_launch: ends that refusal, "or call attach() in the program"
  std::string watched{};   // what its watchers watch, with the article: "an MPI"
  std::vector<Watcher> watchers{};  // not empty: one of them must be there
  bool unasked = false;             // its environment is set where a run names no source, too
  /// A library of its own hears the program, and what that published right before `_exit` or an
  /// exec is to be in the sinks: libringmain_run is preloaded where that is possible.
  bool to_the_end = false;
};

struct Provider {
  ProviderKind kind = ProviderKind::sink;
  std::string name{};
  Loader load{};  // run.at_launch: may be left out
  std::vector<std::string> tags{};
  std::string summary{};   // one line, for lists
  std::string argument{};  // "": takes none; "FILE": needs one, a path; "[MS]": may have one
  /// What is wrong with an argument, in one sentence, or "": so that it is said before anything
  /// starts. May be left out.
  std::function<std::string(std::string_view)> argument_fault{};
  RunNeeds run{};
  std::string from{};  // the plugin's library; "" for what is compiled in
};

namespace detail {

/// "ringmain::sinks::JsonLines" → "json_lines"; of "heartbeat::Source" the namespace.
[[nodiscard]] std::string default_name(const std::type_info& type);
[[nodiscard]] Error thrown_error(const std::type_info& type, const char* what);

/// Calls T::open(arguments…) where there is one, else a constructor. An exception becomes an Error.
template <class Base, class T, class... A>
Result<std::unique_ptr<Base>> make(A&&... arguments) noexcept {
  try {
    if constexpr (requires { T::open(std::forward<A>(arguments)...); }) {
      Result<std::unique_ptr<T>> opened = T::open(std::forward<A>(arguments)...);
      if (!opened) return opened.error();
      return std::unique_ptr<Base>(std::move(opened).value());
    } else {
      static_assert(std::constructible_from<T, A...>,
                    "give it a static open(), or a constructor, that takes the bus (sources and "
                    "bridges) and the argument (std::string_view)");
      return std::unique_ptr<Base>(std::make_unique<T>(std::forward<A>(arguments)...));
    }
  } catch (const std::exception& thrown) {
    return thrown_error(typeid(T), thrown.what());
  } catch (...) {
    return thrown_error(typeid(T), "something that is no std::exception");
  }
}

template <class F>
Loader at_once(F factory) {
  return [factory = std::move(factory)]() -> Result<Factory> { return Factory(factory); };
}

template <class T>
Provider named(Provider said, ProviderKind kind) {
  said.kind = kind;
  if (said.name.empty()) said.name = default_name(typeid(T));
  return said;
}

}  // namespace detail

/// A provider of sinks of type S. The name is S's own, "json_lines" for JsonLines, unless given.
template <std::derived_from<Sink> S>
Provider sink_provider(Provider said = {}) {
  said.load = detail::at_once(
      SinkFactory([](std::string_view argument) { return detail::make<Sink, S>(argument); }));
  return detail::named<S>(std::move(said), ProviderKind::sink);
}
template <std::derived_from<Source> S>
Provider source_provider(Provider said = {}) {
  said.load = detail::at_once(SourceFactory(
      [](Bus& bus, std::string_view argument) { return detail::make<Source, S>(bus, argument); }));
  return detail::named<S>(std::move(said), ProviderKind::source);
}
template <std::derived_from<Bridge> B>
Provider bridge_provider(Provider said = {}) {
  said.load = detail::at_once(BridgeFactory(
      [](Bus& bus, std::string_view argument) { return detail::make<Bridge, B>(bus, argument); }));
  return detail::named<B>(std::move(said), ProviderKind::bridge);
}

}  // namespace ringmain::registry
