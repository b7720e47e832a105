// NCCL's front end of profiler plugins, as a model: what it keeps, in which order it calls, and
// what it never clears.
//
// Threads: as NCCL's, any; what belongs to a thread of the API (depth, mask, three handles) is
// kept for each thread.
#pragma once
#include <memory>
#include <mutex>
#include <string>

#include "tests/harness/nccl/front_end.hpp"
#include "tests/harness/nccl/plugin_view.hpp"

namespace ringmain::nccl_conformance {

/// Releases that call differently; in order.
enum class Release { r2_28, r2_30, r2_31, r2_32 };

/// The ABI version that the release's front end speaks; it knows no newer one.
constexpr int native_version(Release release) noexcept {
  return release == Release::r2_28 ? 5 : release == Release::r2_30 ? 6 : 7;
}
/// KernelCh events come from the proxy's thread, which may end one that it never began; else from
/// a thread of their own.
constexpr bool kernels_by_proxy(Release release) noexcept {
  return release < Release::r2_31;
}
/// The handles of a plan that is replayed are cleared once they are stopped.
constexpr bool clears_plans(Release release) noexcept {
  return release >= Release::r2_31;
}
/// Events of calls and launches have their communicator's rank; else 0.
constexpr bool has_ranks_in_calls(Release release) noexcept {
  return release >= Release::r2_32;
}

class Model final : public FrontEnd {
 public:
  /// `version` 0: the newest that the plugin exports.
  Model(std::string path, int version, Release release, Board& board);
  ~Model() override;
  /// Writes down what the plugin is told; before the first init.
  void write_down(CallLog* log) noexcept { log_ = log; }

  void init(Communicator& communicator) override;
  void finalize(Communicator& communicator) override;
  [[nodiscard]] bool loaded() const override { return plugin_ != nullptr; }
  [[nodiscard]] int mask() const override { return __atomic_load_n(&mask_, __ATOMIC_RELAXED); }
  void set_mask(int mask) override {
    __atomic_fetch_or(&others_, mask, __ATOMIC_RELAXED);
    __atomic_store_n(&mask_, mask, __ATOMIC_RELAXED);
  }
  void group_start(bool of_user) override;
  void group_end_begins() override;
  void group_end() override;
  Task append(const Call& call) override;
  void launch_begins(Plan& plan) override;
  void launch_ends(Plan& plan) override;
  void group_event_begins(Plan& plan) override;
  void tasks_begin(Plan& plan) override;
  void tasks_end(Plan& plan) override;
  void group_event_ends(Plan& plan) override;
  void proxy_op_begins(ProxyArguments& arguments, std::size_t sub) override;
  void proxy_op_progresses(ProxyArguments& arguments, std::size_t sub) override;
  void proxy_op_ends(ProxyArguments& arguments, std::size_t sub) override;
  void step_begins(ProxyArguments& arguments, std::size_t sub, int step) override;
  void step_is(ProxyArguments& arguments, std::size_t sub, int step, int state) override;
  void step_ends(ProxyArguments& arguments, std::size_t sub, int step) override;
  void net_begins(ProxyArguments& arguments, std::size_t sub, int step, std::int64_t id, void* data,
                  void** handle) override;
  void net_is(void* handle, void* data) override;
  void net_ends(void* handle) override;
  void* control_begins(void* context) override;
  void control_is(void* handle, int appended, int state) override;
  void control_ends(void* handle) override;
  void kernel_begins(ProxyArguments& arguments, std::size_t sub, std::uint64_t timer) override;
  void kernel_ends(ProxyArguments& arguments, std::size_t sub, std::uint64_t timer) override;
  void kernel_phase(ProxyArguments& arguments, std::size_t sub, int phase, std::uint64_t begin,
                    std::uint64_t end) override;
  void copy_begins(CopyEngineCall& copy) override;
  void copy_ends(CopyEngineCall& copy) override;
  void copy_sync(CopyEngineCall& copy) override;
  void copy_batch(CopyEngineCall& copy, int operations, std::size_t bytes) override;

  [[nodiscard]] PluginView& plugin() noexcept { return *plugin_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] Release release() const noexcept { return release_; }
  /// The version that was opened; 0 before the first init.
  [[nodiscard]] int version() const noexcept { return opened_; }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  void load();
  void unload();
  void start_api(const Call& call);

  const std::string path_;
  const int wanted_version_;
  const Release release_;
  Board& board_;
  CallLog* log_ = nullptr;
  int mask_ = 0;
  int others_ = 0;  // bits that were set by others than the plugin
  std::mutex loading_;
  int references_ = 0;
  int opened_ = 0;
  bool failed_ = false;
  std::unique_ptr<PluginView> plugin_;
  std::string error_;
};

}  // namespace ringmain::nccl_conformance
