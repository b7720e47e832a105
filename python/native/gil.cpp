#include "ringmain/python/native/gil.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "ringmain/engine/fork.hpp"

namespace ringmain::python {
namespace {

std::atomic<bool> exit_begun{false};
std::atomic<int> released{0};
std::atomic<bool> something_buried{false};

enum : unsigned { kForkGraves = 8 };  // a leaf: nothing is locked under it

struct Graves {
  engine::ForkMutex mutex{kForkGraves};
  std::vector<PyObject*> objects;
};
Graves& graves() {
  static Graves& all = *new Graves;  // never destroyed: captures may die behind static objects
  return all;
}
// Made before there are threads: a fork while another one is in the guard would leave it locked.
[[maybe_unused]] const Graves& made_at_load = graves();

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
  while (released > 1 && std::chrono::steady_clock::now() < end)
    never.wait_for(lock, std::chrono::milliseconds(1));
}

Released::Released() noexcept {
  ++released;
  saved_ = PyEval_SaveThread();
}
Released::~Released() {
  PyEval_RestoreThread(saved_);
  --released;
}

void bury(PyObject* object) noexcept {
  if (object == nullptr) return;
  const std::lock_guard lock(graves().mutex);
  try {
    graves().objects.push_back(object);
    something_buried = true;
  } catch (const std::bad_alloc&) {  // it is kept for ever, which harms nobody
  }
}

void dig() noexcept {
  if (!something_buried) return;
  std::vector<PyObject*> found;
  {
    const std::lock_guard lock(graves().mutex);
    something_buried = false;
    found.swap(graves().objects);
  }
  for (PyObject* object : found) Py_DECREF(object);
}

}  // namespace ringmain::python
