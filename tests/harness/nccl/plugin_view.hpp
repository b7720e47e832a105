// How does a plugin of one ABI version look to NCCL's newest front end? Descriptors and states go
// through it as NCCL converts them, and each call of the plugin is judged.
//
// What a call leaves behind is destroyed at once: the descriptor, the state's arguments and the
// communicator's name are gone for a plugin that kept a pointer to them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

#include "tests/harness/nccl/board.hpp"
#include "tests/harness/nccl/call_log.hpp"

namespace ringmain::nccl_conformance {

namespace abi = ringmain::nccl::abi;

/// Handles that a plugin gave and NCCL still holds; a handle that is given twice is found here.
class LiveHandles;

class PluginView {
 public:
  /// Opens the library as NCCL does. `version` 0: the newest that it exports, up to `native`, which
  /// the front end speaks itself: it converts for older ones. Null, and why in `error`, if it
  /// cannot be opened, has a table with a hole, or does not export one.
  static std::unique_ptr<PluginView> open(const std::string& path, int version, int native,
                                          Board& board, std::string& error);
  /// Writes down what the plugin is told, if `log` is not null.
  void write_down(CallLog* log) noexcept { log_ = log; }
  PluginView(const PluginView&) = delete;
  PluginView& operator=(const PluginView&) = delete;
  /// Closes the library.
  ~PluginView();

  [[nodiscard]] int version() const noexcept { return version_; }
  [[nodiscard]] const char* name() const noexcept;

  /// `name` may be null. The mask is as the conversion leaves it. `others`: all bits that somebody
  /// else set in it, before or meanwhile.
  abi::Result init(void** context, std::uint64_t id, int* mask, const char* name, int nodes,
                   int ranks, int rank, const int& others);
  void finalize(void* context);
  /// What the versions do not know is left out, as NCCL leaves it out; then *handle may stay as it
  /// is.
  void start(void* context, void** handle, abi::DescriptorV7& descriptor);
  void stop(void* handle);
  /// `args` null for the states of GroupApi, as NCCL has it where it does not convert.
  void record(void* handle, int state, const abi::StateArgs* args);
  /// NCCL forgets the handle, though it never stopped it.
  void forget(void* handle) noexcept;

 private:
  PluginView(void* library, void* table, int version, int native, Board& board);
  template <class Descriptor>
  void start_as(void* context, void** handle, Descriptor& descriptor, const char* rule);
  void start_converted(void* context, void** handle, abi::DescriptorV7& descriptor,
                       const char* rule);
  // Which rule is it that a call tries? That of what is unusual about it, else what its thread
  // drives; null if it is a plain call.
  const char* rule_of_start(void* context, const abi::DescriptorV7& descriptor) const noexcept;
  const char* rule_of(void* handle, const char* if_dead, const char* if_live) const noexcept;

  void* const library_;
  void* const table_;
  const int version_;
  const int native_;
  Board& board_;
  CallLog* log_ = nullptr;
  std::unique_ptr<LiveHandles> live_;
  std::unique_ptr<LiveHandles> finalized_;  // contexts
};

}  // namespace ringmain::nccl_conformance
