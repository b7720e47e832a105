// NCCL's own front end: its functions, by their symbols, on structures that are filled as NCCL
// fills them, so that its own code loads, initialises, calls and finalizes a plugin. No GPU is
// needed.
#pragma once
#include <string>

#include "tests/harness/nccl/front_end.hpp"
#include "tests/harness/nccl/tests/layout.hpp"

namespace ringmain::nccl_conformance {

class RealFrontEnd final : public FrontEnd {
 public:
  /// Loads the library; which plugin it loads is said by NCCL_PROFILER_PLUGIN. Throws
  /// std::runtime_error.
  RealFrontEnd(const std::string& library, const Layout& layout);

  void init(Communicator& communicator) override;
  void finalize(Communicator& communicator) override;
  [[nodiscard]] bool loaded() const override;
  [[nodiscard]] int mask() const override;
  void set_mask(int mask) override;
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
  /// Not reachable: NCCL's function for it is local to its thread's.
  void kernel_phase(ProxyArguments& arguments, std::size_t sub, int phase, std::uint64_t begin,
                    std::uint64_t end) override;
  void copy_begins(CopyEngineCall& copy) override;
  void copy_ends(CopyEngineCall& copy) override;
  void copy_sync(CopyEngineCall& copy) override;
  void copy_batch(CopyEngineCall& copy, int operations, std::size_t bytes) override;

 private:
  template <class Result = int, class... Arguments>
  Result call(const char* symbol, Arguments... arguments) const;
  [[nodiscard]] void* symbol(const char* name) const;
  [[nodiscard]] std::byte* thread_local_of(const char* name) const;
  template <class T>
  T& of_thread(const char* member) const;
  void call_plan(const char* symbol, Plan& plan);
  template <class Then>
  void with_arguments(ProxyArguments& arguments, std::size_t sub, Then then);
  template <class Then>
  void with_copy(CopyEngineCall& copy, Then then);
  void kernel(ProxyArguments& arguments, std::size_t sub, std::uint64_t timer, bool begin);
  [[nodiscard]] bool kernels_have_works() const noexcept;  // 2.31 and later
  [[nodiscard]] int function_of(Function function) const;

  const Layout& layout_;
  std::byte* base_ = nullptr;
  std::size_t tls_module_ = 0;
};

}  // namespace ringmain::nccl_conformance
