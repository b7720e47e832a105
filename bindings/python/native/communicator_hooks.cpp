#include "bindings/python/native/communicator_hooks.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nanobind/stl/string.h>
#include <new>
#include <utility>
#include <vector>

#include "bindings/python/native/communicator_arguments.hpp"
#include "bindings/python/native/inline_subscribe.hpp"
#include "bindings/python/native/record_of.hpp"
#include "bindings/python/native/stable_abi.hpp"

namespace ringmain::python {
namespace {

using namespace collective;

/// All that live; the GIL is its lock.
std::vector<std::weak_ptr<Callback>>& living() {
  static auto& all = *new std::vector<std::weak_ptr<Callback>>;
  return all;
}

/// How many calls are under way, in whichever threads. For the interpreter's exit.
std::atomic<int> under_way{0};

/// Is this a thread that calls an abort hook?
constinit thread_local bool calls_abort_hook = false;

class UnderWay {
 public:
  UnderWay() noexcept { ++under_way; }
  ~UnderWay() { --under_way; }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
};

nb::object text(Name name) {
  nb::object made = nb::steal(python_text(name.view()));
  if (!made.is_valid()) throw nb::python_error();
  return made;
}
nb::object text(std::string_view word) {
  nb::object made = nb::steal(python_text(word));
  if (!made.is_valid()) throw nb::python_error();
  return made;
}

void log_once(Callback& by, nb::python_error& error) noexcept {
  if (by.raised++ != 0) return;
  error.restore();
  log_raised(by.name);
}

/// Calls what `with(callable)` calls, with the GIL. What is raised goes to `raised`.
template <class With, class Raised>
void call(Callback& by, With with, Raised raised) {
  const UnderWay mine;
  if (exiting()) return;
  const Taken gil;
  const nb::error_scope callers;
  ++by.gil_taken;
  const nb::object callable = by.callable();
  if (!callable.is_valid()) return;
  try {
    with(callable);
  } catch (nb::python_error& error) {
    raised(error);
  }
}
template <class With>
void call(Callback& by, With with) {
  call(by, with, [&by](nb::python_error& error) { log_once(by, error); });
}

Verdict verdict_of(const nb::object& answer, const Callback& by) {
  if (answer.is_none() || answer.ptr() == Py_True) return Verdict::allow();
  if (answer.ptr() == Py_False) return Verdict::veto(Name("vetoed by " + by.name));
  if (PyUnicode_Check(answer.ptr())) {
    nb::object held;
    return Verdict::veto(Name(utf8_of(answer.ptr(), held)));
  }
  PyErr_Format(PyExc_TypeError,
               "a pre hook answers None or True (let it go on), False or a str (veto), and not %R",
               answer.ptr());
  throw nb::python_error();
}

Verdict ask(Callback& by, const PreHookArgs& args) {
  Verdict verdict = Verdict::allow();
  OfPython* const here = OfPython::showing(args.arguments);
  if (here != nullptr) here->op_id = args.op_id;
  call(
      by,
      [&](const nb::object& callable) {
        const ArgumentsView view = view_of(*args.arguments);
        verdict = verdict_of(
            callable(args.op_id, text(to_string(args.name)), text(args.op), args.async_op,
                     objects_of(view.input, here != nullptr),
                     objects_of(view.output, here != nullptr), view.peer,
                     view.reduces ? text(to_string(view.reduce)) : nb::object(nb::none()),
                     extra_of(*args.arguments), text(args.communicator->name()),
                     args.communicator->rank()),
            by);
      },
      [&](nb::python_error& error) {
        verdict = Verdict::veto(Name(words_of(error.value())));
        if (here == nullptr) return log_once(by, error);
        ++by.raised;
        here->raised = nb::borrow(error.value());
      });
  return verdict;
}

std::string_view word_of(Outcome outcome) noexcept {
  return outcome == Outcome::issued ? "issued" : outcome == Outcome::refused ? "refused" : "threw";
}

void tell(Callback& by, const PostHookArgs& args) {
  const OfPython* const here = OfPython::issuing(args.op_id);
  PyObject* const work = OfPython::showing(args.work) == nullptr
                             ? Py_None
                             : const_cast<PyObject*>(static_cast<const PyObject*>(args.work));
  call(by, [&](const nb::object& callable) {
    callable(args.op_id, text(to_string(args.name)), text(args.op), text(word_of(args.outcome)),
             text(args.reason), nb::handle(work),
             args.new_comm == nullptr ? nb::object(nb::none()) : nb::cast(*args.new_comm),
             text(args.communicator->name()), args.communicator->rank(),
             here == nullptr ? nb::object(nb::none()) : nb::cast(here->async_op));
  });
}

/// A call in a thread of its own. Python's thread says when it is over, and then who waits for it
/// returns.
struct OwnThreadCall {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
};

Result<RemovableHandle> registered(const Communicator& on, HookKind kind,
                                   std::shared_ptr<Callback> by, HookOptions options) {
  switch (kind) {
    case HookKind::pre:
      return on.register_pre_hook([by](const PreHookArgs& args) { return ask(*by, args); },
                                  std::move(options));
    case HookKind::post:
      return on.register_post_hook([by](const PostHookArgs& args) { tell(*by, args); },
                                   std::move(options));
    case HookKind::completion:
      return on.register_completion_hook(
          [by](const CompletionHookArgs& args) {
            call(*by, [&](const nb::object& callable) {
              callable(args.op_id, record_of(args.completed), record_of(args.failed));
            });
          },
          std::move(options));
    case HookKind::abort:
      break;
  }
  return on.register_abort_hook(
      [by](const AbortHookArgs& args) {
        call_in_own_thread(by, [&args] {
          return nb::make_tuple(args.incident, text(args.reason), text(args.asked_by));
        });
      },
      std::move(options));
}

}  // namespace

std::shared_ptr<Callback> Callback::hold(nb::object callable, std::string name) {
  auto made = std::make_shared<Callback>(std::move(callable), std::move(name));
  std::erase_if(living(), [](const auto& one) { return one.expired(); });
  living().push_back(made);
  return made;
}

CommunicatorHook::CommunicatorHook(const Communicator& on, HookKind kind, nb::object callback,
                                   int priority, std::string name)
    : callback_(Callback::hold(std::move(callback), name)) {
  std::optional<Result<RemovableHandle>> made;
  {
    const Released released;
    made.emplace(registered(on, kind, callback_, {priority, std::move(name)}));
  }
  if (!*made) {
    if (made->error().code == Error::Code::no_memory) throw std::bad_alloc();
    throw nb::value_error(made->error().message.c_str());
  }
  handle_ = std::move(*made).value();
}

Detached CommunicatorHook::remove(Seconds limit) {
  Detached ended = Detached::timeout;
  if (calls_abort_hook) {  // which may be the very call that would be waited for
    ended = handle_.remove_for(std::chrono::nanoseconds::zero());
    if (ended == Detached::timeout) ended = Detached::deferred;
  } else {
    (void)wait_in_slices(limit, [&](std::chrono::nanoseconds slice) {
      ended = handle_.remove_for(slice);
      return ended != Detached::timeout;
    });
  }
  if (ended != Detached::timeout) {
    callback_->drop();
    reclaim_retired();
  }
  return ended;
}

void call_in_own_thread(const std::shared_ptr<Callback>& by,
                        const std::function<nb::object()>& arguments) {
  const UnderWay mine;
  const auto running = std::make_shared<OwnThreadCall>();
  bool started = false;
  call(*by, [&](const nb::object& callable) {
    const auto raised = nb::cpp_function([by] { return by->raised++ == 0; });
    const auto over = nb::cpp_function([running] {
      const std::lock_guard lock(running->mutex);
      running->over = true;
      running->changed.notify_all();
    });
    nb::module_::import_("ringmain._thread")
        .attr("call_hook")(text(by->name), callable, arguments(), raised, over);
    started = true;
  });
  std::unique_lock lock(running->mutex);
  while (started && !running->over && !exiting())
    running->changed.wait_for(lock, std::chrono::milliseconds(100));
}

void begin_abort_hook() noexcept {
  calls_abort_hook = true;
}
bool in_abort_hook() noexcept {
  return calls_abort_hook;
}

std::string words_of(nb::handle error) {
  nb::object held;
  std::string words = class_name(error.ptr());
  const nb::object said = nb::steal(PyObject_Str(error.ptr()));
  if (!said.is_valid()) {
    PyErr_Clear();
    return words;
  }
  const std::string_view more = utf8_of(said.ptr(), held);
  return more.empty() ? words : words + ": " + std::string(more);
}

std::function<void(Name)> abort_function(nb::object callback) {
  if (callback.is_none()) return {};
  return [by = Callback::hold(std::move(callback), "a communicator's abort")](Name reason) {
    call(*by, [&](const nb::object& callable) { callable(text(reason)); });
  };
}

void end_communicator_hooks(Seconds limit) {
  for (const auto& one : living()) {
    if (const auto callback = one.lock()) callback->drop();
  }
  (void)wait_in_slices(limit, [](std::chrono::nanoseconds slice) {
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    const auto end = std::chrono::steady_clock::now() + slice;
    while (under_way > 0 && std::chrono::steady_clock::now() < end)
      never.wait_for(lock, std::chrono::milliseconds(1));
    return under_way == 0;
  });
}

}  // namespace ringmain::python
