#include "adapters/sources/nccl/nccl_chain.hpp"

#include <algorithm>
#include <cstdio>
#include <dlfcn.h>
#include <exception>
#include <strings.h>
#include <utility>

#include "engine/system/clock.hpp"
#include "engine/system/figure.hpp"

#include "adapters/sources/nccl/nccl_descriptors.hpp"
#include "adapters/sources/nccl/nccl_front.hpp"

namespace ringmain::nccl {
namespace {

constexpr std::int64_t kSlowNs = 1'000'000;

/// With the types that NCCL tells as well, as those asked for belong to them.
constexpr Types with_ancestors(Types types) noexcept {
  using enum abi::Type;
  if ((types & kNetPlugin) != 0) types |= kProxyStep;
  if ((types & kProxyStep) != 0) types |= kProxyOp;
  if ((types & kKernelPhase) != 0) types |= kKernelCh;
  if ((types & (kProxyOp | kKernelCh)) != 0) types |= kColl | kP2p;
  if ((types & (kCeSync | kCeBatch)) != 0) types |= kCeColl;
  if ((types & (kColl | kP2p)) != 0) types |= kGroup;
  if ((types & (kColl | kCeColl)) != 0) types |= kCollApi;
  if ((types & kP2p) != 0) types |= kP2pApi;
  if ((types & (kCollApi | kP2pApi | kKernelLaunch)) != 0) types |= kGroupApi;
  return types;
}

// In place of the context of a communicator that a plugin refused.
char refused_context = 0;

}  // namespace

/// One of them. Its functions are called in NCCL's threads, as NCCL would, but for what NCCL could
/// not: one that throws is called no more, as nobody knows in which state that has left it.
class ChainedPlugin {
 public:
  /// `converted`: it is older than what NCCL speaks to ringmain.
  ChainedPlugin(std::string named, int version, bool converted, void* table)
      : named_(std::move(named)), version_(version), converted_(converted), table_(table) {}

  [[nodiscard]] const std::string& named() const noexcept { return named_; }
  [[nodiscard]] const void* table() const noexcept { return table_; }
  [[nodiscard]] Types needed() const noexcept {
    if (thrown_ != kNothing) return 0;
    const auto mask = static_cast<Types>(__atomic_load_n(&mask_, __ATOMIC_RELAXED));
    const std::uint64_t before = needed_for_.get();
    if (static_cast<Types>(before) == mask) [[likely]]
      return static_cast<Types>(before >> 32);
    const Types needed = with_ancestors(mask & abi::all_types(version_)) & abi::all_types(version_);
    needed_for_.set(std::uint64_t{needed} << 32 | mask);
    return needed;
  }
  /// What it answers; `context` is its own, or what stands for a refusal.
  abi::Result open(const Identity& who, const char* name, abi::Logger log,
                   void*& context) noexcept {
    context = &refused_context;
    const Timed timed(*this, true);
    return guarded([&] {
      void* its = nullptr;
      const abi::Result answer =
          version_ == 4
              ? v4().init(&its, &mask_, name, who.id, who.nodes, who.ranks, who.rank, log)
              : newer().init(&its, who.id, &mask_, name, who.nodes, who.ranks, who.rank, log);
      if (answer == abi::kSuccess) context = its;
      return answer;
    });
  }
  void close(void* context) noexcept {
    if (context == nullptr || context == &refused_context) return;  // as NCCL does
    const Timed timed(*this, true);
    (void)guarded([&] { return newer().finalize(context); });
  }
  [[nodiscard]] bool wants(const void* context, std::uint64_t type) const noexcept {
    return context != &refused_context && (needed() & type) != 0;
  }
  [[nodiscard]] void* start(void* context, const abi::DescriptorV7& what, void* parent,
                            void* parent_group, bool timed) noexcept {
    switch (version_) {
      case 4:
        return start_as<abi::DescriptorV4>(context, what, parent, parent_group, timed);
      case 5:
        return start_as<abi::DescriptorV5>(context, what, parent, parent_group, timed);
      case 6:
        return start_as<abi::DescriptorV6>(context, what, parent, parent_group, timed);
      default:
        return start_as<abi::DescriptorV7>(context, what, parent, parent_group, timed);
    }
  }
  [[nodiscard]] int version() const noexcept { return version_; }
  /// With a descriptor of the plugin's own version. It may write into it, as into NCCL's.
  template <class D>
  [[nodiscard]] void* start_with(void* context, D& what, bool timed) noexcept {
    using Start = abi::Result (*)(void*, void**, D*);
    const auto start_event = reinterpret_cast<Start>(newer().start_event);
    void* handle = nullptr;
    const Timed measured(*this, timed);
    const abi::Result answer = guarded([&] { return start_event(context, &handle, &what); });
    return answer == abi::kSuccess ? handle : nullptr;
  }
  void stop(void* handle, bool timed) noexcept {
    const Timed measured(*this, timed);
    (void)guarded([&] { return newer().stop_event(handle); });
  }
  void record(void* handle, abi::State state, abi::StateArgs* args, bool timed) noexcept {
    constexpr abi::State kNewest[] = {abi::kKernelChStop, abi::kGroupEndApiStart,
                                      abi::kCeBatchComplete, abi::kKernelPhaseStop};
    if (state > kNewest[version_ - abi::kOldestVersion]) return;
    if (version_ < 6 && state < abi::kSendGpuWait) return;
    // NCCL gives its newest version alone a NULL, and the others what it converts arguments into.
    abi::StateArgs none{};
    if (args == nullptr && converted_) args = &none;
    const Timed measured(*this, timed);
    (void)guarded([&] { return newer().record_event_state(handle, state, args); });
  }
  [[nodiscard]] bool has_thrown() const noexcept { return thrown_ != kNothing; }
  /// What it threw, once; nullptr: nothing that is news.
  [[nodiscard]] const char* news_of_throw() noexcept {
    std::uint8_t written = kWritten;
    return thrown_.compare_exchange_strong(written, kTold) ? what_.data() : nullptr;
  }
  /// The longest call, if it is slow and longer than any that was told.
  [[nodiscard]] std::int64_t news_ns() noexcept {
    const std::int64_t longest = longest_ns_.get();
    if (longest < kSlowNs || longest <= told_ns_) return 0;
    told_ns_ = longest;
    return longest;
  }

 private:
  /// How long one call takes, where that is asked for.
  class Timed {
   public:
    Timed(ChainedPlugin& of, bool asked) noexcept
        : of_(of), began_ns_(asked ? engine::now_ns() : 0) {}
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;
    ~Timed() {
      if (began_ns_ == 0) return;
      of_.longest_ns_.at_least(engine::now_ns() - began_ns_);
    }

   private:
    ChainedPlugin& of_;
    const std::int64_t began_ns_;
  };

  template <class D>
  void* start_as(void* context, const abi::DescriptorV7& what, void* parent, void* parent_group,
                 bool timed) noexcept {
    D converted;
    convert(converted, what, parent);
    if (has_plan(what.type)) plan_of(converted) = parent_group;
    return start_with(context, converted, timed);
  }
  /// One call of its, unless it has thrown in one before. Nothing passes the boundary to NCCL.
  template <class Call>
  abi::Result guarded(Call call) noexcept {
    if (thrown_ != kNothing) return abi::kInternalError;
    try {
      return call();
    } catch (const std::exception& thrown) {
      threw(thrown.what());
    } catch (...) {
      threw("what is no std::exception");
    }
    return abi::kInternalError;
  }
  void threw(const char* what) noexcept {
    std::uint8_t nothing = kNothing;
    if (!thrown_.compare_exchange_strong(nothing, kBeingWritten)) return;  // another thread's
    (void)std::snprintf(what_.data(), what_.size(), "%s", what == nullptr ? "" : what);
    thrown_ = kWritten;
  }
  // The tables differ in the types of two functions only.
  [[nodiscard]] const abi::TableV4& v4() const noexcept {
    return *static_cast<const abi::TableV4*>(table_);
  }
  [[nodiscard]] const abi::TableV7& newer() const noexcept {
    return *static_cast<const abi::TableV7*>(table_);
  }

  const std::string named_;
  const int version_;
  const bool converted_;
  void* const table_;
  int mask_ = 0;                                      // the plugin writes it when it likes
  mutable engine::Figure<std::uint64_t> needed_for_;  // above the mask that asks for it
  engine::Figure<std::int64_t> longest_ns_;
  std::int64_t told_ns_ = 0;  // by the housekeeper alone
  enum Thrown : std::uint8_t { kNothing, kBeingWritten, kWritten, kTold };
  std::atomic<std::uint8_t> thrown_{kNothing};
  std::array<char, 96> what_{};  // before kWritten by one thread, then by none
};

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

namespace {

template <class D>
constexpr int version_of() noexcept {
  if (std::is_same_v<D, abi::DescriptorV4>) return 4;
  if (std::is_same_v<D, abi::DescriptorV5>) return 5;
  return std::is_same_v<D, abi::DescriptorV6> ? 6 : 7;
}

}  // namespace

template <class D>
void* Chain::pass(std::size_t which, const Communicator* of, D& what, void* parent, void* plan,
                  bool timed) noexcept {
  ChainedPlugin& plugin = *plugins_[which];
  void* const context = of == nullptr ? nullptr : of->chained[which].load();
  if (!plugin.wants(context, what.type)) return nullptr;
  if (plugin.version() == version_of<D>()) [[likely]] {
    // One among several has its own: what it writes there is not told to the next.
    if (size_ == 1) {
      const WithParents<D> theirs(what, parent, plan);
      return plugin.start_with(context, what, timed);
    }
    D own = what;
    const WithParents<D> theirs(own, parent, plan);
    return plugin.start_with(context, own, timed);
  }
  abi::DescriptorV7 widened;
  convert(widened, what, nullptr);
  return plugin.start(context, widened, parent, plan, timed);
}
template void* Chain::pass(std::size_t, const Communicator*, abi::DescriptorV4&, void*, void*,
                           bool) noexcept;
template void* Chain::pass(std::size_t, const Communicator*, abi::DescriptorV5&, void*, void*,
                           bool) noexcept;
template void* Chain::pass(std::size_t, const Communicator*, abi::DescriptorV6&, void*, void*,
                           bool) noexcept;
template void* Chain::pass(std::size_t, const Communicator*, abi::DescriptorV7&, void*, void*,
                           bool) noexcept;

void Chain::stop(std::size_t which, void* handle, bool timed) noexcept {
  if (handle != nullptr) plugins_[which]->stop(handle, timed);
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
