#include "bindings/python/native/gil.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "engine/system/fork.hpp"

namespace ringmain::python {
namespace {

std::atomic<bool> exit_begun{false};
std::atomic<int> released{0};
std::atomic<bool> something_retired{false};

enum : unsigned { kForkRetired = 8, kForkReleased = 9 };  // leaves: nothing is locked under them

/// In a forked child no other thread can be in Released.
class Forgetting final : public engine::ForkWitness {
 public:
  Forgetting() : ForkWitness(kForkReleased) { begin_watching(); }
  void in_child() noexcept override { released = 0; }
};
[[maybe_unused]] const Forgetting& forgetting = *new Forgetting;

struct RetiredObjects {
  engine::ForkMutex mutex{kForkRetired};
  std::vector<PyObject*> objects;
};
RetiredObjects& retired_objects() {
  static RetiredObjects& all =
      *new RetiredObjects;  // never destroyed: captures may die after static objects
  return all;
}
// Made before there are threads: a fork while another thread makes it would leave its guard locked.
[[maybe_unused]] const RetiredObjects& made_at_load = retired_objects();

}  // namespace

bool exiting() noexcept {
  return exit_begun;
}
void begin_exit() noexcept {
  exit_begun = true;
}

void wait_for_released(std::chrono::nanoseconds limit) noexcept {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  const auto end = std::chrono::steady_clock::now() + limit;
  PyThreadState* const saved = PyEval_SaveThread();  // those threads need the GIL to come back
  while (released > 0 && std::chrono::steady_clock::now() < end)
    never.wait_for(lock, std::chrono::milliseconds(1));
  PyEval_RestoreThread(saved);
}

Released::Released() noexcept {
  ++released;  // before the look at exit_begun: the exit sees this, or this thread sees the exit
  if (!exit_begun) {
    saved_ = PyEval_SaveThread();
  } else {
    --released;
  }
}
Released::~Released() {
  if (saved_ == nullptr) return;
  PyEval_RestoreThread(saved_);
  --released;
}

void retire(PyObject* object) noexcept {
  if (object == nullptr) return;
  const std::lock_guard lock(retired_objects().mutex);
  try {
    retired_objects().objects.push_back(object);
    something_retired = true;
  } catch (const std::bad_alloc&) {  // the object is kept for ever, which harms nobody
  }
}

void reclaim_retired() noexcept {
  if (!something_retired) return;
  std::vector<PyObject*> found;
  {
    const std::lock_guard lock(retired_objects().mutex);
    something_retired = false;
    found.swap(retired_objects().objects);
  }
  for (PyObject* object : found) Py_DECREF(object);
}

}  // namespace ringmain::python
