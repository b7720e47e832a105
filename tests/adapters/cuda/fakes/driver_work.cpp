// The fake libcuda.so.1: how what lies on streams is done, and the thread that calls host
// functions.
#include "tests/adapters/cuda/fakes/driver_work.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "tests/adapters/cuda/fakes/driver_world.hpp"

namespace ringmain::fake {
namespace {

thread_local bool in_host = false;

/// The thread of the driver's: one host function at a time, whichever stream it is of.
void call_hosts() {
  std::unique_lock lock(world().mutex);
  Works& all = works();
  for (;;) {
    all.moved.wait(lock, [&] { return !all.hosts.empty(); });
    Works::Host next = std::move(all.hosts.front());
    all.hosts.pop_front();
    all.host_runs = true;
    lock.unlock();
    in_host = true;
    next.op.function(next.op.with);
    in_host = false;
    lock.lock();
    all.host_runs = false;
    next.work->in_host = false;
    advance();
  }
}

/// A GPU writes without a lock, and its earlier writes are seen before this one.
void write(const Op& op) {
  void* const to = host_view(op.address, sizeof(std::uint64_t));
  if (to == nullptr) {
    ++works().stray_writes;
    return;
  }
  __atomic_store_n(static_cast<std::uint64_t*>(to), op.number, __ATOMIC_RELEASE);
}

/// Does the head of the queue, if that can be done.
bool step(const std::shared_ptr<Work>& work) {
  if (work->ops.empty() || work->in_host) return false;
  Op& head = work->ops.front();
  switch (head.kind) {
    case Op::Kind::held:
      if (works().held.count(head.number) != 0) return false;
      break;
    case Op::Kind::wait:
      if (head.mark->reached < head.number) return false;
      break;
    case Op::Kind::record:
      head.mark->reached = std::max(head.mark->reached, head.number);
      break;
    case Op::Kind::write:
      write(head);
      break;
    case Op::Kind::host:
      work->in_host = true;
      if (!std::exchange(works().host_thread, true)) std::thread(call_hosts).detach();
      works().hosts.push_back({work, std::move(head)});
      break;
  }
  work->ops.pop_front();
  return true;
}

}  // namespace

Works& works() {
  static auto* const all = new Works;
  return *all;
}

bool in_host_function() {
  return in_host;
}

void* host_view(std::uint64_t device_address, std::uint64_t bytes) {
  if (device_address < kDeviceView) return nullptr;
  const std::uint64_t address = device_address - kDeviceView;
  for (const auto& [begin, block] : world().memory) {
    const bool pinned = block.kind == MemoryClass::host || block.kind == MemoryClass::registered;
    if (pinned && address >= begin && address + bytes <= begin + block.bytes) {
      return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
    }
  }
  return nullptr;
}

void put(const std::shared_ptr<Work>& work, Op op) {
  Works& all = works();
  if (work->over()) all.busy.push_back(work);
  work->ops.push_back(std::move(op));
  advance();
}

void advance() {
  Works& all = works();
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; i < all.busy.size(); ++i) {
      while (step(all.busy[i])) again = true;
    }
  }
  all.busy.erase(std::remove_if(all.busy.begin(), all.busy.end(),
                                [](const auto& work) { return work->over(); }),
                 all.busy.end());
  all.moved.notify_all();
}

void drop_work_of(const Context* context) {
  Works& all = works();
  for (const auto& work : all.busy) {
    if (work->context == context) work->ops.clear();
  }
  for (auto host = all.hosts.begin(); host != all.hosts.end();) {
    if (host->work->context != context) {
      ++host;
      continue;
    }
    host->work->in_host = false;
    host = all.hosts.erase(host);
  }
  advance();
}

bool all_over(const Context* context) {
  const auto& busy = works().busy;
  return std::none_of(busy.begin(), busy.end(),
                      [context](const auto& work) { return work->context == context; });
}

}  // namespace ringmain::fake

using namespace ringmain::fake;  // NOLINT: the functions below are at C's level

extern "C" {

std::uint64_t fake_cuda_hold(void* stream) {
  const std::lock_guard lock(world().mutex);
  const std::shared_ptr<Work> work = work_of(number(stream));
  if (work == nullptr) return 0;
  const std::uint64_t mine = ++works().last_held;
  works().held.insert(mine);
  put(work, {.kind = Op::Kind::held, .number = mine});
  return mine;
}

void fake_cuda_finish(std::uint64_t held) {
  const std::lock_guard lock(world().mutex);
  if (held == 0) works().held.clear();
  works().held.erase(held);
  advance();
}

void fake_cuda_settle(void) {
  std::unique_lock lock(world().mutex);
  Works& all = works();
  all.moved.wait(lock, [&] { return all.hosts.empty() && !all.host_runs; });
}

void fake_cuda_break(int result) {
  const std::lock_guard lock(world().mutex);
  for (Context& context : world().contexts) {
    if (!context.live) continue;
    context.broken = result;
    drop_work_of(&context);
  }
}

std::uint64_t fake_cuda_living(void) {
  const std::lock_guard lock(world().mutex);
  std::uint64_t living = 0;
  world().streams.for_each([&living](const Stream&) { ++living; });
  world().events.for_each([&living](const Event&) { ++living; });
  for (const auto& [begin, block] : world().memory)
    living += block.kind == MemoryClass::registered ? 1 : 0;
  return living;
}

std::uint64_t fake_cuda_stray_writes(void) {
  const std::lock_guard lock(world().mutex);
  return works().stray_writes;
}

}  // extern "C"
