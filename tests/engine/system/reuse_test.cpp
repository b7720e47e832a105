// What if the system answers as it seldom does? A channel that is made gets the memory of the one
// that was freed, a worker is stopped at its barrier, a thread is refused.
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <dlfcn.h>
#include <new>
#include <pthread.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

#include <gtest/gtest.h>

#include "engine/deliver/own_thread.hpp"

#include "tests/engine/eventually.hpp"
#include "tests/engine/rig.hpp"

namespace {

using ringmain::engine::ChannelCore;

/// Room for one channel, given out again and again.
struct Place {
  alignas(ChannelCore) std::byte bytes[sizeof(ChannelCore)];
  std::atomic<bool> taken{false};
};
Place place;
std::atomic<bool> staged{false};

/// The thread whose next barrier is a door; 0: none.
std::atomic<long> stopped_thread{0};
ringmain::tests::Door door;

long own_thread() {
  static const auto next = reinterpret_cast<long (*)(long, ...)>(::dlsym(RTLD_NEXT, "syscall"));
  return next(SYS_gettid);
}

std::atomic<bool> refuse_threads{false};

}  // namespace

// NOLINTBEGIN: other people's names and signatures.
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  if (staged && bytes == sizeof(ChannelCore) && !place.taken.exchange(true)) return place.bytes;
  const auto a = static_cast<std::size_t>(alignment);
  if (void* made = std::aligned_alloc(a, (bytes + a - 1) / a * a)) return made;
  throw std::bad_alloc();
}
void operator delete(void* memory, std::align_val_t) noexcept {
  if (memory != place.bytes) return std::free(memory);
  place.taken = false;
}
void operator delete(void* memory, std::size_t, std::align_val_t alignment) noexcept {
  operator delete(memory, alignment);
}
extern "C" long syscall(long number, ...) noexcept {
  va_list rest;
  va_start(rest, number);
  long a[6];
  for (long& one : a) one = va_arg(rest, long);
  va_end(rest);
  static const auto next = reinterpret_cast<long (*)(long, ...)>(::dlsym(RTLD_NEXT, "syscall"));
  if (number == SYS_membarrier) {
    long me = own_thread();
    if (stopped_thread.compare_exchange_strong(me, 0)) (void)door.pass();
  }
  return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) noexcept {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const next = reinterpret_cast<Create*>(::dlsym(RTLD_NEXT, "pthread_create"));
  return refuse_threads ? EAGAIN : next(thread, attributes, run, argument);
}
// NOLINTEND

namespace ringmain::engine {
namespace {

using tests::AttachedSubscriber;
using tests::eventually;
using tests::push_number;
using tests::Running;

TEST(ReuseTest, AWorkerDoesNotTakeAReadersMailboxForTheOneThatItGaveUp) {
  if (barrier_is_fence()) GTEST_SKIP() << "membarrier is refused here";
  const Running running(2);
  const auto parks = [&running](std::size_t worker) { return running->counts()[worker].parks; };
  ASSERT_TRUE(eventually([&] { return parks(0) != 0 && parks(1) != 0; }));
  // Of those that sleep the first is woken: it is busy elsewhere while the second has its event.
  tests::Door elsewhere;
  const auto other = running.channel();
  const AttachedSubscriber busy(*other, [&](const engine::Run&) { (void)elsewhere.pass(); });
  ASSERT_EQ(push_number(*other->take_lane({}, *other), 1), Pushed::accepted);
  ASSERT_TRUE(elsewhere.await_arrival());
  staged = true;
  std::uint32_t index = 0;
  {
    const auto given_up = running.channel();
    ASSERT_EQ(static_cast<void*>(given_up.get()), static_cast<void*>(place.bytes));
    index = given_up->index();
    const AttachedSubscriber attached(*given_up,
                                      [&](const engine::Run&) { stopped_thread = own_thread(); });
    Lane& lane = *given_up->take_lane({}, *given_up);
    ASSERT_EQ(push_number(lane, 1), Pushed::accepted);
    ASSERT_TRUE(door.await_arrival()) << "its worker looks at it a last time after a barrier";
    ChannelCore::give_lane(lane);
    elsewhere.open();
    running->retire(*given_up);
  }
  ASSERT_TRUE(eventually([] { return !place.taken; })) << "the other worker disposes of it";
  ChannelCoreOptions options;
  options.pulled = true;
  const auto box = running.channel(options);
  ASSERT_EQ(static_cast<void*>(box.get()), static_cast<void*>(place.bytes));
  ASSERT_EQ(box->index(), index);
  box->begin_listening();
  (void)prepare_wait(*box);  // a reader that polls
  Lane& lane = *box->take_lane({}, *box);
  ASSERT_EQ(push_number(lane, 2), Pushed::accepted);
  const std::uint64_t parked = parks(1);
  door.open();
  ASSERT_TRUE(eventually([&] { return parks(1) > parked; })) << "the worker has had its look";
  EXPECT_EQ(box->line.leased.load(), 0u);
  EXPECT_EQ(lane.consumed.load(), 0u) << "a worker drained what is a reader's";
  running->retire(*box);
}

/// stop() may have found the own thread on the list before the system refused to start it.
TEST(RefusedThreadTest, WhoJoinsAThreadThatTheSystemRefusesIsNotKeptWaiting) {
  const Running running(1);
  ChannelCoreOptions options;
  options.pulled = options.own_thread = true;
  const Ref<OwnThread> own = new OwnThread(running.channel(options), "refused");
  refuse_threads = true;
  EXPECT_THROW(own->start(), std::system_error);
  refuse_threads = false;
  EXPECT_TRUE(own->join(0));
}

}  // namespace
}  // namespace ringmain::engine
