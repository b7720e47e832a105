// A plugin that is sound, or has the one fault that it is compiled with.
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <unistd.h>

#include "adapters/plugin.hpp"

namespace {

using ringmain::Bus;
using ringmain::Error;
using ringmain::Result;
namespace registry = ringmain::registry;

class Quiet final : public registry::Sink {
 public:
  explicit Quiet(std::string_view) {}
  void hear(const ringmain::EventView&) override {}
};
class Throws final : public registry::Sink {
 public:
  explicit Throws(std::string_view) { throw std::runtime_error("no disk in this room"); }
  void hear(const ringmain::EventView&) override {}
};
class ThrowsANumber final : public registry::Sink {
 public:
  explicit ThrowsANumber(std::string_view) { throw 7; }
  void hear(const ringmain::EventView&) override {}
};
class Refuses final : public registry::Sink {
 public:
  static Result<std::unique_ptr<Refuses>> open(std::string_view) {
    return Error{Error::Code::no_memory, "there is no room for it"};
  }
  void hear(const ringmain::EventView&) override {}
};
/// Holds a subscription of its own, whose code lies in this library.
class Held final : public registry::Source {
 public:
  Held(Bus& bus, std::string_view) : said_(bus.subscribe(">", [](const ringmain::EventView&) {})) {}

 private:
  ringmain::Subscription said_;
};
class BothWays final : public registry::Bridge {
 public:
  BothWays(Bus&, std::string_view) {}
};

[[maybe_unused]] constexpr ringmain_plugin_provider_v1 gives_nothing() {
  return {"sink", "gives_nothing",
          [](void*, const char*, std::size_t, ringmain_plugin_error*) -> void* { return nullptr; }};
}

#ifdef FAULT_THROWS_AT_START
struct Thrower {
  Thrower() { throw std::runtime_error("thrown while the library was loaded"); }
} thrower;
#endif
#ifdef FAULT_EXITS_AT_START
struct Leaver {
  Leaver() { std::_Exit(3); }
} leaver;
#endif
#ifdef FAULT_HANGS_AT_START
struct Hanger {
  Hanger() {
    for (;;) ::pause();
  }
} hanger;
#endif

}  // namespace

#if defined(FAULT_NO_SYMBOL)
#elif defined(FAULT_OLD_ABI) || defined(FAULT_OTHER_LAYOUT) || defined(FAULT_NULL_TABLE)
extern "C" __attribute__((visibility("default"))) const ringmain_plugin_table_v1*
ringmain_plugin_v1() noexcept {
#ifdef FAULT_OLD_ABI
  static constexpr ringmain_plugin_table_v1 kTable = {
      sizeof kTable, 77, ringmain::plugin::layout(), 0, 0, nullptr};
  return &kTable;
#elif defined(FAULT_OTHER_LAYOUT)
  static constexpr ringmain_plugin_table_v1 kTable = {
      sizeof kTable, ringmain::plugin::kAbi, ringmain::plugin::layout() + 1, 0, 0, nullptr};
  return &kTable;
#else
  return nullptr;
#endif
}
#else
RINGMAIN_PLUGIN(ringmain::plugin::sink<Quiet>("quiet"), ringmain::plugin::sink<Throws>("throws"),
                ringmain::plugin::sink<ThrowsANumber>("throws_a_number"),
                ringmain::plugin::sink<Refuses>("refuses"), gives_nothing(),
                ringmain::plugin::source<Held>("held"),
                ringmain::plugin::bridge<BothWays>("both_ways"))
#endif
