// Is what c10 says of its wait counters heard, by the rules of its one C function?
#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "events/compile.hpp"

#include "adapters/sources/compile/waits/abi.hpp"

namespace ringmain::compile {
namespace {

/// Text that ends where readable memory does, as a key may that has no NUL after it.
class AtTheEdge {
 public:
  explicit AtTheEdge(std::string_view text) : bytes_(text.size()) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    room_ = static_cast<char*>(
        ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    (void)::mprotect(room_ + page, page, PROT_NONE);
    text_ = room_ + page - text.size();
    std::memcpy(text_, text.data(), text.size());
  }
  AtTheEdge(const AtTheEdge&) = delete;
  AtTheEdge& operator=(const AtTheEdge&) = delete;
  ~AtTheEdge() { (void)::munmap(room_, 2 * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))); }
  [[nodiscard]] const char* data() const noexcept { return text_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

 private:
  char* room_ = nullptr;
  char* text_ = nullptr;
  std::size_t bytes_;
};

/// What a program may call compile.wait.
struct NotOurs {
  int number = 0;
};

/// The library as ctypes loads it: its names are the process's, also if it was local before.
class WaitCounterTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(::dlsym(RTLD_DEFAULT, abi::kInitialise), nullptr);
    ASSERT_NE(::dlopen(RINGMAIN_WAIT_COUNTER, RTLD_NOW | RTLD_LOCAL), nullptr) << ::dlerror();
    ASSERT_EQ(::dlsym(RTLD_DEFAULT, abi::kInitialise), nullptr);
    ASSERT_NE(::dlopen(RINGMAIN_WAIT_COUNTER, RTLD_NOW | RTLD_GLOBAL), nullptr) << ::dlerror();
  }
  template <class F>
  static F find(const char* name) {
    const auto found = reinterpret_cast<F>(::dlsym(RTLD_DEFAULT, name));
    EXPECT_NE(found, nullptr) << name;
    return found;
  }
  static abi::WaitBackend offer(std::string_view key) {
    abi::WaitBackend made{};
    const AtTheEdge text(key);
    find<abi::Initialise>(abi::kInitialise)(&made, text.data(), text.size());
    return made;
  }
  static int attach(void* bus) {
    return find<decltype(&ringmain_wait_counter_attach)>("ringmain_wait_counter_attach")(bus);
  }
  static std::uint64_t keys() {
    return find<decltype(&ringmain_wait_counter_keys)>("ringmain_wait_counter_keys")();
  }
};

// One process has one backend, so this is one story.
TEST_F(WaitCounterTest, CountersAreSpansOnTheBusThatAttached) {
  EXPECT_EQ(keys(), 0u);
  const abi::WaitBackend early = offer("pytorch.wait_counter.too_early");
  EXPECT_EQ(early.self, nullptr);  // nobody wants it: c10 forgets us for this key
  EXPECT_EQ(keys(), 1u);

  Bus of_program;
  (void)of_program.channel<NotOurs>("compile.wait");
  EXPECT_EQ(attach(&of_program), 0);
  static Bus bus;  // PyTorch keeps the backends for ever
  std::vector<Wait> heard;
  auto hearing = bus.channel<Wait>().subscribe([&heard](const Wait& w) { heard.push_back(w); });
  EXPECT_EQ(attach(&bus), 1);
  EXPECT_EQ(attach(&bus), 1);
  Bus other;
  EXPECT_EQ(attach(&other), 0);

  const std::map<std::string, Wait::What> kKeys{
      {"pytorch.wait_counter.dynamo_compile", Wait::What::compile},
      {"pytorch.wait_counter.entire_backward_compile", Wait::What::compile},
      {"pytorch.wait_counter.Scheduler.fused_nodes", Wait::What::compile},
      {"pytorch.wait_counter.triton_autotuner", Wait::What::compile},
      {"pytorch.filelock.enter", Wait::What::file_lock},
      {"pytorch.wait_counter.c10d.new_group", Wait::What::process_group},
      {"pytorch.ProcessGroupNCCL__abort", Wait::What::process_group},
      {"pytorch.wait_counter.TCPStore__get", Wait::What::store},
      {"pytorch.wait_counter.c10d._store_based_barrier", Wait::What::store},
      {"pytorch.wait_counter.cuda_device_synchronize", Wait::What::device},
      {"", Wait::What::other},
      {"pytorch.wait_counter.brand_new", Wait::What::other}};
  for (const auto& [key, what] : kKeys) {
    const abi::WaitBackend backend = offer(key);
    ASSERT_NE(backend.self, nullptr) << key;
    ASSERT_TRUE(backend.start != nullptr && backend.stop != nullptr && backend.destroy != nullptr);
    const std::intptr_t outer = backend.start(backend.self, 1'000'000);
    const std::intptr_t inner = backend.start(backend.self, 1'000'000);
    EXPECT_NE(outer, inner);
    std::thread elsewhere([&] { backend.stop(backend.self, 1'000'250, outer); });
    elsewhere.join();
    backend.stop(backend.self, 1'000'007, inner);
    ASSERT_TRUE(bus.flush(std::chrono::seconds(30)));
    ASSERT_EQ(heard.size(), 4u);
    std::set<std::uint64_t> begun;
    for (const Wait& one : heard) {
      EXPECT_EQ(one.key.view(), key);
      EXPECT_EQ(one.what, what) << key;
      if (one.edge == Edge::begin) {
        begun.insert(one.id);
        EXPECT_EQ(one.took_ns, 0);
      } else {
        EXPECT_TRUE(begun.contains(one.id) || one.took_ns == 250'000);  // another lane may be first
        EXPECT_TRUE(one.took_ns == 250'000 || one.took_ns == 7'000) << one.took_ns;
      }
    }
    EXPECT_EQ(begun, (std::set<std::uint64_t>{static_cast<std::uint64_t>(outer),
                                              static_cast<std::uint64_t>(inner)}));
    heard.clear();
    if (key.empty()) backend.destroy(backend.self);  // and used again: it must not matter
  }
  EXPECT_EQ(keys(), 1 + kKeys.size());

  const abi::WaitBackend backend = offer("pytorch.wait_counter.many");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&backend] {
      for (int i = 0; i < 1000; ++i) {
        backend.stop(backend.self, i + 5, backend.start(backend.self, i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(bus.flush(std::chrono::seconds(30)));
  ASSERT_EQ(heard.size(), 8000u);
  std::map<std::uint64_t, int> edges;
  for (const Wait& one : heard) {
    ++edges[one.id];
    EXPECT_EQ(one.took_ns, one.edge == Edge::end ? 5000 : 0);
  }
  EXPECT_EQ(edges.size(), 4000u);
  hearing.reset();
  backend.stop(backend.self, 9, backend.start(backend.self, 8));  // nobody listens
  EXPECT_EQ(heard.size(), 8000u);
  EXPECT_EQ(bus.stop().left, 0u);
  backend.stop(backend.self, 9, backend.start(backend.self, 8));  // and nobody can
}

}  // namespace
}  // namespace ringmain::compile
