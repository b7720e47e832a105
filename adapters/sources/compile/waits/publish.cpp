// What is published of a wait counter? Its begin and its end, with one id.
//
// Each costs a load and a branch while nobody listens; else one publish, and a system call at a
// thread's first. No lock, no allocation, no GIL; nothing is kept between begin and end but the
// number that PyTorch hands back.
#include <atomic>
#include <initializer_list>
#include <string_view>

#include "bus/bus.hpp"

#include "events/compile.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/launch/tid.hpp"
#include "adapters/run.hpp"
#include "adapters/sources/compile/waits/abi.hpp"

namespace ringmain::compile {
namespace {

using run::this_tid;

constexpr const char* kSource = "torch_waits";

/// One counter. Never freed: PyTorch keeps what it was given for ever.
struct Key {
  Name name;
  Wait::What what;
  Key* next;  // links all keys, so that a leak checker finds them
};
constinit std::atomic<Key*> keys{nullptr};

Key* keep(std::string_view name, Wait::What what) {
  Key* const made = new Key{Name(name), what, keys};
  while (!keys.compare_exchange_weak(made->next, made)) {
  }
  return made;
}

constinit std::atomic<Bus*> attached{nullptr};
constinit std::atomic<Channel<Wait>*> waits{nullptr};

bool any_in(std::string_view key, std::initializer_list<std::string_view> words) noexcept {
  for (const std::string_view word : words) {
    if (key.find(word) != key.npos) return true;
  }
  return false;
}

Wait::What what_of(std::string_view key) noexcept {
  if (any_in(key, {"filelock"})) return Wait::What::file_lock;
  if (any_in(key, {"Store__", "store_based_barrier"})) return Wait::What::store;
  if (any_in(key, {"c10d.", "ProcessGroup", "FlightRecorder"})) return Wait::What::process_group;
  if (any_in(key, {"synchronize"})) return Wait::What::device;
  if (any_in(key, {"compile", "codegen", "triton", "Scheduler", "inductor", "dynamo", "autotun"})) {
    return Wait::What::compile;
  }
  return Wait::What::other;
}

/// Begin and a serial number in one word, which PyTorch keeps: microseconds of half a year above
/// the numbers of four million waits that begin at once.
constexpr unsigned kSerialBits = 22;
constexpr std::uint64_t kSerials = (std::uint64_t{1} << kSerialBits) - 1;
constexpr std::uint64_t kMicros = (std::uint64_t{1} << (63 - kSerialBits)) - 1;

static_assert(sizeof(std::intptr_t) == sizeof(std::uint64_t));

std::intptr_t begin(void* self, std::int64_t now_us) noexcept {
  static constinit std::atomic<std::uint64_t> serials{0};
  const std::uint64_t id =
      (static_cast<std::uint64_t>(now_us) & kMicros) << kSerialBits | (++serials & kSerials);
  Channel<Wait>* const channel = waits;
  if (channel == nullptr || !channel->wanted()) return static_cast<std::intptr_t>(id);
  const Key& key = *static_cast<const Key*>(self);
  Wait said;
  said.id = id;
  said.thread = this_tid();
  said.key = key.name;
  said.what = key.what;
  channel->post(said);
  return static_cast<std::intptr_t>(id);
}

void end(void* self, std::int64_t now_us, std::intptr_t context) noexcept {
  Channel<Wait>* const channel = waits;
  if (channel == nullptr || !channel->wanted()) return;
  const Key& key = *static_cast<const Key*>(self);
  Wait said;
  said.id = static_cast<std::uint64_t>(context);
  const std::uint64_t took_us =
      (static_cast<std::uint64_t>(now_us) - (said.id >> kSerialBits)) & kMicros;
  said.took_ns = static_cast<std::int64_t>(took_us) * 1000;
  said.thread = this_tid();
  said.key = key.name;
  said.what = key.what;
  said.edge = Edge::end;
  channel->post(said);
}

void leave(void*) noexcept {}

/// False: another bus has them, or the program's channel of that name is another event's.
bool publish_on(Bus& bus) {
  if (attached != nullptr) return attached == &bus;
  const auto channel = run::channel_of<Wait>(bus);
  if (!channel) {
    static constinit std::atomic<bool> said{false};
    if (!said.exchange(true)) run::could_not_attach(kSource, channel.error().message);
    return false;
  }
  Bus* nobody = nullptr;
  if (!attached.compare_exchange_strong(nobody, &bus) && nobody != &bus) return false;
  waits = channel.value();
  return true;
}

/// For a process where no bus was attached: does a run want the counters?
bool heard_by_a_run() {
  if (attached != nullptr) return true;
  for (const char* const source : {kSource, "torch"}) {
    if (Bus* const bus = run::join(source)) return publish_on(*bus);
  }
  return false;
}

}  // namespace
}  // namespace ringmain::compile

extern "C" {

__attribute__((visibility("default"))) void ringmain_waits_offer(
    ringmain::compile::abi::WaitBackend* out, const char* key, std::size_t key_bytes) try {
  using namespace ringmain::compile;
  if (!heard_by_a_run()) return;
  const std::string_view name(key, key_bytes);
  *out = {keep(name, what_of(name)), &begin, &end, &leave};
} catch (...) {
  // Out of memory: this counter is not heard.
}

__attribute__((visibility("default"))) int ringmain_waits_attach(void* bus) try {
  using namespace ringmain;
  return compile::publish_on(bus == nullptr ? Bus::process() : *static_cast<Bus*>(bus)) ? 1 : 0;
} catch (...) {
  return 0;
}
}
