// How do several profiler plugins live in NCCL's one place? ringmain's is the one that NCCL loads;
// those that it was to load before come behind it, each as if it were alone: with its own ABI
// version, mask, contexts, handles and parents. NCCL is asked for what any of them asks for.
//
// One that fails, throws, returns no handle, or is called too late by NCCL harms none: what is
// stale is stopped here. What a plugin's calls take is measured now and then, and a slow one is
// named.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "adapters/sources/nccl/nccl_core.hpp"
#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace ringmain::nccl {

class ChainedPlugin;

/// Who says a sentence: a function that outlives this, or nobody. Unlike std::function it allocates
/// nothing.
class Sentence {
 public:
  Sentence() noexcept = default;
  template <class Say>
  Sentence(Say& say) noexcept  // NOLINT(google-explicit-constructor): as a std::function is made
      : to_(&say), say_([](void* to, std::string_view said) { (*static_cast<Say*>(to))(said); }) {}
  void operator()(std::string_view said) const {
    if (say_ != nullptr) say_(to_, said);
  }
  explicit operator bool() const noexcept { return say_ != nullptr; }

 private:
  void* to_ = nullptr;
  void (*say_)(void* to, std::string_view said) = nullptr;
};

class Chain {
 public:
  /// Loads the plugins of a list with ':' between them, as NCCL's variable names one: a file, or
  /// X for libnccl-profiler-X.so. `version`: the newest that NCCL has asked ringmain for. What is
  /// wrong with one is said by `fault(sentence)`, and the others are loaded. nullptr: there is
  /// none. Throws std::bad_alloc.
  static std::unique_ptr<Chain> load(std::string_view list, int version,
                                     const std::function<void(const std::string&)>& fault);
  ~Chain();
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  /// What they ask for, with the types that NCCL adds to it.
  [[nodiscard]] Types needed() const noexcept;
  /// `say`: of each that does not want this communicator, or that has thrown.
  void open(Communicator& of, const Identity& who, const char* name, abi::Logger log,
            const Sentence& say) noexcept;
  void close(Communicator& of, const Sentence& say) noexcept;

  using Handles = std::array<void*, kChainMax>;
  /// What they gave for what a span belongs to, and for the plan of an operation.
  struct Parents {
    Handles of{}, groups{};
  };
  /// `of`: nullptr where the communicator is another process's, or not known. `timed`: it is
  /// measured how long each takes.
  void start(const Communicator* of, Handles& handles, const abi::DescriptorV7& what,
             const Parents& parents, bool timed) noexcept;
  void stop(const Handles& handles, bool timed) noexcept {
    for (std::size_t i = 0; i < size_; ++i) stop(i, handles[i], timed);
  }
  void record(const Handles& handles, abi::State state, abi::StateArgs* args, bool timed) noexcept {
    for (std::size_t i = 0; i < size_; ++i) record(i, handles[i], state, args, timed);
  }
  /// Of one of them, what it gave: nullptr for nothing.
  void stop(std::size_t which, void* handle, bool timed) noexcept;
  void record(std::size_t which, void* handle, abi::State state, abi::StateArgs* args,
              bool timed) noexcept;
  /// One span in 64, on each thread: what is read of the clock is most of what a call costs.
  [[nodiscard]] static bool is_timed(engine::Token span) noexcept {
    return (span.place() + span.tenant()) % 64 == 0;
  }

  /// Of each that has thrown, or that has taken long, since the last look.
  void look(const Sentence& threw, const Sentence& slow) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// The one of a chain of one; else nullptr.
  [[nodiscard]] ChainedPlugin* only() noexcept { return only_; }
  [[nodiscard]] ChainedPlugin& at(std::size_t which) noexcept { return *plugins_[which]; }

 private:
  Chain();
  bool say_throw(std::size_t which, const Sentence& say) noexcept;
  std::array<std::unique_ptr<ChainedPlugin>, kChainMax> plugins_;
  std::size_t size_ = 0;
  ChainedPlugin* only_ = nullptr;
};

}  // namespace ringmain::nccl
