// One plugin behind ringmain's. Its functions are called in NCCL's threads, as NCCL would, but for
// what NCCL could not: one that throws is called no more, as nobody knows in which state that has
// left it.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "engine/system/clock.hpp"
#include "engine/system/figure.hpp"

#include "adapters/sources/nccl/nccl_attachment.hpp"
#include "adapters/sources/nccl/nccl_communicators.hpp"
#include "adapters/sources/nccl/nccl_descriptors.hpp"
#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace ringmain::nccl {

inline constexpr std::int64_t kSlowNs = 1'000'000;

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

template <class D>
constexpr int version_of() noexcept {
  if (std::is_same_v<D, abi::DescriptorV4>) return 4;
  if (std::is_same_v<D, abi::DescriptorV5>) return 5;
  return std::is_same_v<D, abi::DescriptorV6> ? 6 : 7;
}

/// In place of the context of a communicator that a plugin refused.
[[gnu::visibility("hidden")]] inline char refused_context = 0;

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
  /// The same where D is NCCL's, which it is told in its own form if it wants it: it may write
  /// into that.
  template <class D>
  [[nodiscard]] void* start_copy(void* context, D& what, void* parent, void* plan,
                                 bool timed) noexcept {
    if (!wants(context, what.type)) return nullptr;
    if (version_ == version_of<D>()) {
      D own = what;
      const WithParents<D> theirs(own, parent, plan);
      return start_with<D>(start_of<D>(), context, own, timed);
    }
    abi::DescriptorV7 widened;
    convert(widened, what, nullptr);
    return start(context, widened, parent, plan, timed);
  }
  /// Its startEvent: D is of its version.
  template <class D>
  using Start = abi::Result (*)(void*, void**, D*);
  template <class D>
  [[nodiscard]] Start<D> start_of() const noexcept {
    return reinterpret_cast<Start<D>>(newer().start_event);
  }
  /// With a descriptor of the plugin's own version, of a plugin that wants it. It may write into
  /// it, as into NCCL's.
  template <class D>
  [[nodiscard, gnu::always_inline]] void* start_with(Start<D> start, void* context, D& what,
                                                     bool timed) noexcept {
    if (timed) [[unlikely]]
      return start_timed<D>(start, context, what);
    void* handle = nullptr;
    const abi::Result answer = tried([&] { return start(context, &handle, &what); });
    return answer == abi::kSuccess ? handle : nullptr;
  }
  /// Its stopEvent, for stop_with(); nullptr: it is called no more.
  [[nodiscard]] abi::StopEventFn* stop_of() const noexcept {
    return thrown_ == kNothing ? newer().stop_event : nullptr;
  }
  [[gnu::always_inline]] void stop_with(abi::StopEventFn* stop, void* handle, bool timed) noexcept {
    if (stop == nullptr) return;
    if (timed) [[unlikely]]
      return stop_timed(stop, handle);
    (void)tried([&] { return stop(handle); });
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
    return start_with<D>(start_of<D>(), context, converted, timed);
  }
  /// One call of its, unless it has thrown in one before.
  template <class Call>
  [[gnu::always_inline]] abi::Result guarded(const Call& call) noexcept {
    return thrown_ != kNothing ? abi::kInternalError : tried(call);
  }
  /// Nothing passes the boundary to NCCL.
  template <class Call>
  [[gnu::always_inline]] abi::Result tried(const Call& call) noexcept {
    try {
      return call();
    } catch (const std::exception& thrown) {
      threw(thrown.what());
    } catch (...) {
      threw("what is no std::exception");
    }
    return abi::kInternalError;
  }
  // By themselves: one in 64 comes here, and the others need nothing that lies on the stack.
  template <class D>
  [[gnu::noinline]] void* start_timed(Start<D> start, void* context, D& what) noexcept {
    const Timed timed(*this, true);
    return start_with<D>(start, context, what, false);
  }
  [[gnu::noinline]] void stop_timed(abi::StopEventFn* stop, void* handle) noexcept {
    const Timed timed(*this, true);
    stop_with(stop, handle, false);
  }
  [[gnu::noinline]] void threw(const char* what) noexcept {
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

}  // namespace ringmain::nccl
