// How does a hook of Python's get called, by whichever thread issues, ends or aborts?
//
// That thread takes the GIL for it; an abort hook is called in a thread that Python makes. What a
// hook raises is said once by the logger "ringmain", but for a pre hook in a thread where Python
// called for the operation: there the caller gets it.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <nanobind/nanobind.h>
#include <string>

#include "bindings/python/native/gil.hpp"

#include "adapters/sources/collective/communicator.hpp"

namespace ringmain::python {
namespace nb = nanobind;

/// A function of Python's that C++ holds. Threads: any.
class Callback {
 public:
  /// With the GIL. The interpreter's exit drops it.
  [[nodiscard]] static std::shared_ptr<Callback> hold(nb::object callable, std::string name);
  Callback(nb::object callable, std::string called) noexcept
      : name(std::move(called)), callable_(callable.release().ptr()) {}
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  ~Callback() { retire(callable_); }

  /// Both with the GIL. After drop() it is not valid.
  [[nodiscard]] nb::object callable() const noexcept { return nb::borrow(callable_); }
  void drop() noexcept { retire(std::exchange(callable_, nullptr)); }

  const std::string name;
  std::atomic<std::uint64_t> raised{0}, gil_taken{0};

 private:
  PyObject* callable_;
};

enum class HookKind : std::uint8_t { pre, post, completion, abort };

class CommunicatorHook {
 public:
  /// `callback` gets, of a pre hook, (op_id, name, op, async_op, inputs, outputs, peer, reduction
  /// or None, what else, group, rank), and answers None or True, False, or a reason; of a post
  /// hook, (op_id, name, op, outcome, reason, work or None, new communicator or None, group, rank,
  /// async_op or None); of a completion hook, (op_id, record or None if it failed, record or None
  /// if it completed); of an abort hook, (incident, reason, asked_by). Throws nanobind::value_error
  /// where it is refused. With the GIL, given up meanwhile.
  CommunicatorHook(const collective::Communicator& on, HookKind kind, nb::object callback,
                   int priority, std::string name);

  Detached remove(Seconds limit);
  [[nodiscard]] bool attached() const noexcept { return handle_.attached(); }
  [[nodiscard]] const Callback& callback() const noexcept { return *callback_; }

 private:
  std::shared_ptr<Callback> callback_;
  collective::RemovableHandle handle_;
};

/// Has a thread that Python makes call it, and waits for it without the GIL: until it has returned,
/// or the interpreter exits. One that never returns is cut off then, and its thread has no frame of
/// C++ by then. `arguments`, a tuple, is made with the GIL.
void call_in_own_thread(const std::shared_ptr<Callback>& by,
                        const std::function<nb::object()>& arguments);
/// This thread calls an abort hook, and does nothing else: here nobody waits for abort hooks.
void begin_abort_hook() noexcept;
[[nodiscard]] bool in_abort_hook() noexcept;
/// "ValueError: no": of the exception.
[[nodiscard]] std::string words_of(nb::handle error);
/// How a communicator's backend gives up.
[[nodiscard]] std::function<void(Name)> abort_function(nb::object callback);
/// No hook of Python's is called from here on; waits for those that are. For the interpreter's
/// exit.
void end_communicator_hooks(Seconds limit);

}  // namespace ringmain::python
