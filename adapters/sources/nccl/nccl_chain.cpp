#include "adapters/sources/nccl/nccl_chain.hpp"

#include <algorithm>
#include <cstdio>
#include <dlfcn.h>
#include <exception>
#include <strings.h>
#include <utility>

#include "adapters/sources/nccl/nccl_chained_plugin.hpp"
#include "adapters/sources/nccl/nccl_front.hpp"

namespace ringmain::nccl {
namespace {

/// As NCCL opens one, but that it stays, whoever closes it. STATIC_PLUGIN, or what it begins with,
/// is the program itself with what it is linked with: ringmain's own is not there, because NCCL
/// opens it RTLD_LOCAL.
void* open_library(const std::string& named) {
  if (::strncasecmp("STATIC_PLUGIN", named.c_str(), named.size()) == 0)
    return ::dlopen(nullptr, RTLD_NOW | RTLD_LOCAL);
  constexpr int kHow = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  void* library = ::dlopen(named.c_str(), kHow);
  const bool whole =
      named.find('/') != std::string::npos || (named.starts_with("lib") && named.ends_with(".so"));
  if (library == nullptr && !whole)
    library = ::dlopen(("libnccl-profiler-" + named + ".so").c_str(), kHow);
  return library;
}

/// A version's table is what NCCL takes, whole or not: an older one would not be looked for.
bool is_whole(const void* table) {
  const auto& all = *static_cast<const abi::TableV7*>(table);
  return all.init != nullptr && all.start_event != nullptr && all.stop_event != nullptr &&
         all.record_event_state != nullptr && all.finalize != nullptr;
}

struct Loaded {
  std::unique_ptr<ChainedPlugin> plugin;  // nullptr: not to be had
  std::string fault;                      // "": or it is ringmain's own
};
Loaded load_one(const std::string& named, int version) {
  void* const library = open_library(named);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return {nullptr, "the NCCL profiler plugin '" + named +
                         "' cannot be loaded, and NCCL's events go on without it: " +
                         (why == nullptr ? "no such library" : why)};
  }
  for (int v = version; v >= abi::kOldestVersion; --v) {
    void* const table = ::dlsym(library, abi::symbol_of(v));
    if (table == nullptr) continue;
    if (is_own_table(table)) return {};
    if (!is_whole(table)) {
      return {nullptr, "the NCCL profiler plugin '" + named + "' is left out: its table " +
                           abi::symbol_of(v) + " has a function that is NULL"};
    }
    return {std::make_unique<ChainedPlugin>(named, v, v < version, table), ""};
  }
  return {nullptr, "the NCCL profiler plugin '" + named +
                       "' is left out: it has no table of a version from 4 to " +
                       std::to_string(version) + ", which this NCCL takes"};
}

}  // namespace

Chain::Chain() = default;
Chain::~Chain() = default;

std::unique_ptr<Chain> Chain::load(std::string_view list, int version,
                                   const std::function<void(const std::string&)>& fault) {
  std::unique_ptr<Chain> made(new Chain);
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(':', at), list.size());
    const std::string named(list.substr(at, end - at));
    at = end + 1;
    if (named.empty()) continue;
    if (made->size_ == kChainMax) {
      fault("the NCCL profiler plugin '" + named + "' is left out: at most " +
            std::to_string(kChainMax) + " come behind ringmain's");
      continue;
    }
    Loaded loaded = load_one(named, version);
    if (!loaded.fault.empty()) fault(loaded.fault);
    const auto is_same = [&](const auto& one) {
      return one && one->table() == loaded.plugin->table();
    };
    if (loaded.plugin && std::ranges::any_of(made->plugins_, is_same)) {
      fault("the NCCL profiler plugin '" + named + "' is named twice, and called once");
    } else if (loaded.plugin) {
      made->plugins_[made->size_++] = std::move(loaded.plugin);
    }
  }
  if (made->size_ == 0) return nullptr;
  if (made->size_ == 1) made->only_ = made->plugins_[0].get();
  return made;
}

Types Chain::needed() const noexcept {
  Types types = 0;
  for (std::size_t i = 0; i < size_; ++i) types |= plugins_[i]->needed();
  return types;
}

namespace {

/// No allocation: this is said in NCCL's init and finalize, too.
template <class... A>
void say_formatted(const Sentence& say, const char* format, A... arguments) noexcept {
  std::array<char, 224> said{};
  (void)std::snprintf(said.data(), said.size(), format, arguments...);
  say(said.data());
}

}  // namespace

void Chain::open(Communicator& of, const Identity& who, const char* name, abi::Logger log,
                 const Sentence& say) noexcept {
  for (std::size_t i = 0; i < size_; ++i) {
    void* context = nullptr;
    const abi::Result answer = plugins_[i]->open(who, name, log, context);
    of.chained[i].store(context);
    if (say_throw(i, say) || answer == abi::kSuccess || plugins_[i]->has_thrown()) continue;
    say_formatted(say, "a plugin hears nothing of this communicator, as its init returned %d: %s",
                  static_cast<int>(answer), plugins_[i]->named().c_str());
  }
}
void Chain::close(Communicator& of, const Sentence& say) noexcept {
  for (std::size_t i = 0; i < size_; ++i) {
    plugins_[i]->close(of.chained[i].exchange(&refused_context));
    (void)say_throw(i, say);
  }
}

void Chain::start(const Communicator* of, Handles& handles, const abi::DescriptorV7& what,
                  const Parents& parents, bool timed) noexcept {
  for (std::size_t i = 0; i < size_; ++i) {
    void* const context = of == nullptr ? nullptr : of->chained[i].load();
    if (!plugins_[i]->wants(context, what.type)) continue;
    handles[i] = plugins_[i]->start(context, what, parents.of[i], parents.groups[i], timed);
  }
}

void Chain::stop(std::size_t which, void* handle, bool timed) noexcept {
  ChainedPlugin& plugin = *plugins_[which];
  if (handle != nullptr) plugin.stop_with(plugin.stop_of(), handle, timed);
}
void Chain::record(std::size_t which, void* handle, abi::State state, abi::StateArgs* args,
                   bool timed) noexcept {
  if (handle != nullptr) plugins_[which]->record(handle, state, args, timed);
}

void Chain::look(const Sentence& threw, const Sentence& slow) noexcept {
  for (std::size_t i = 0; i < size_; ++i) {
    (void)say_throw(i, threw);
    const std::int64_t took_ns = plugins_[i]->news_ns();
    if (took_ns == 0) continue;
    say_formatted(slow,
                  "the NCCL profiler plugin '%s' held a thread of NCCL's for %lld us in one call",
                  plugins_[i]->named().c_str(), static_cast<long long>(took_ns / 1000));
  }
}

bool Chain::say_throw(std::size_t which, const Sentence& say) noexcept {
  const char* const what = say ? plugins_[which]->news_of_throw() : nullptr;
  if (what == nullptr) return false;
  say_formatted(say, "the NCCL profiler plugin '%s' is called no more, as it threw: %s",
                plugins_[which]->named().c_str(), what);
  return true;
}

}  // namespace ringmain::nccl
