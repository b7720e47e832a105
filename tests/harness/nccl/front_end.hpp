// Who calls the plugin? The functions through which NCCL tells its profiler plugin, as an
// interface: the model of them, and in the tests NCCL's own.
//
// Each is called by the thread that calls it in NCCL. They return nothing: what a plugin answers is
// judged where it is called.
#pragma once
#include "tests/harness/nccl/calls.hpp"

namespace ringmain::nccl_conformance {

class FrontEnd {
 public:
  FrontEnd() = default;
  FrontEnd(const FrontEnd&) = delete;
  FrontEnd& operator=(const FrontEnd&) = delete;
  virtual ~FrontEnd() = default;

  /// Opens the plugin with the first communicator, and tells it of this one.
  virtual void init(Communicator& communicator) = 0;
  /// Closes the plugin after the last one.
  virtual void finalize(Communicator& communicator) = 0;
  [[nodiscard]] virtual bool loaded() const = 0;

  /// The process's one mask, which plugins and RAS write at any time.
  [[nodiscard]] virtual int mask() const = 0;
  virtual void set_mask(int mask) = 0;

  /// A group of the user's, or the one that NCCL makes around a call by itself.
  virtual void group_start(bool of_user) = 0;
  /// The end of the outermost group is called; what it launches comes between the two.
  virtual void group_end_begins() = 0;
  virtual void group_end() = 0;
  /// A call inside a group of this thread's.
  virtual Task append(const Call& call) = 0;
  virtual void launch_begins(Plan& plan) = 0;
  virtual void launch_ends(Plan& plan) = 0;
  virtual void group_event_begins(Plan& plan) = 0;
  virtual void tasks_begin(Plan& plan) = 0;
  virtual void tasks_end(Plan& plan) = 0;
  virtual void group_event_ends(Plan& plan) = 0;

  virtual void proxy_op_begins(ProxyArguments& arguments, std::size_t sub) = 0;
  virtual void proxy_op_progresses(ProxyArguments& arguments, std::size_t sub) = 0;
  virtual void proxy_op_ends(ProxyArguments& arguments, std::size_t sub) = 0;
  virtual void step_begins(ProxyArguments& arguments, std::size_t sub, int step) = 0;
  virtual void step_is(ProxyArguments& arguments, std::size_t sub, int step, int state) = 0;
  virtual void step_ends(ProxyArguments& arguments, std::size_t sub, int step) = 0;
  virtual void net_begins(ProxyArguments& arguments, std::size_t sub, int step, std::int64_t id,
                          void* data, void** handle) = 0;
  virtual void net_is(void* handle, void* data) = 0;
  virtual void net_ends(void* handle) = 0;

  virtual void* control_begins(void* context) = 0;
  virtual void control_is(void* handle, int appended, int state) = 0;
  virtual void control_ends(void* handle) = 0;

  virtual void kernel_begins(ProxyArguments& arguments, std::size_t sub, std::uint64_t timer) = 0;
  virtual void kernel_ends(ProxyArguments& arguments, std::size_t sub, std::uint64_t timer) = 0;
  /// A part of the kernel that is under way: its begin and its end at once.
  virtual void kernel_phase(ProxyArguments& arguments, std::size_t sub, int phase,
                            std::uint64_t begin, std::uint64_t end) = 0;

  virtual void copy_begins(CopyEngineCall& copy) = 0;
  virtual void copy_ends(CopyEngineCall& copy) = 0;
  virtual void copy_sync(CopyEngineCall& copy) = 0;
  virtual void copy_batch(CopyEngineCall& copy, int operations, std::size_t bytes) = 0;
};

/// What a call leaves in a plan, still without masks and handles.
Task task_of(const Call& call);

const char* text_of(Function function) noexcept;
const char* text_of(Datatype type) noexcept;
std::size_t size_of(Datatype type) noexcept;

}  // namespace ringmain::nccl_conformance
