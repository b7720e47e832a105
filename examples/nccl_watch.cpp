// What does NCCL do while it does it, and whom does it wait for when it hangs? The program listens
// to NCCL's own profiler events on a bus of its own: each operation with what shows its end, and
// one that has made no progress with the peer and the place where it stands. It then gives up.
//
//   export NCCL_PROFILER_PLUGIN=/usr/lib/ringmain/libnccl-profiler-ringmain.so WORLD_SIZE=2
//   RANK=0 CUDA_VISIBLE_DEVICES=0 ./nccl_watch /tmp/id &
//   RANK=1 CUDA_VISIBLE_DEVICES=1 ./nccl_watch /tmp/id
//
// Rank 0 leaves NCCL's id in the file, which is not to be there before. The variable is read when
// the first communicator is made; the whole path, as NCCL looks for a name in the loader's folders.
// Behind the file may come words, as after `ringmain run --source nccl:`, such as stall=30.
// The last call is rank 0's alone, as of a job in which the others took another branch.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>

#include <ringmain/adapters/sources/nccl/nccl.hpp>
#include <ringmain/adapters/sources/nccl/nccl_source.hpp>
#include <ringmain/bus/bus.hpp>

namespace {

namespace nccl = ringmain::nccl;

constexpr int kSteps = 3;
constexpr std::size_t kElements = 1 << 20;

int number_of(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}
std::string text(const ringmain::Name& name) {
  return std::string(name.view());
}

nccl::ncclUniqueId meet(const char* path, int rank) {
  nccl::ncclUniqueId id{};
  if (rank == 0) {
    const std::string half = std::string(path) + ".half";
    std::FILE* const file = std::fopen(half.c_str(), "wb");
    if (nccl::GetUniqueId(&id) != nccl::ncclSuccess || file == nullptr) std::exit(1);
    if (std::fwrite(&id, sizeof id, 1, file) != 1 || std::fclose(file) != 0) std::exit(1);
    if (std::rename(half.c_str(), path) != 0) std::exit(1);
    return id;
  }
  for (std::size_t got = 0; got != 1; std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
    std::FILE* const file = std::fopen(path, "rb");
    if (file == nullptr) continue;
    got = std::fread(&id, sizeof id, 1, file);
    (void)std::fclose(file);
  }
  return id;
}

void say_over(const nccl::Evidence& how) {
  const bool by_kernel = how.kind == nccl::EvidenceKind::kernel_channels;
  const std::int64_t took_ns = how.began_ns == 0 ? 0 : how.ended_ns - how.began_ns;
  std::printf("%s on %s took %lld us, as %s shows\n", text(how.func).c_str(),
              text(how.group).c_str(), static_cast<long long>(took_ns / 1000),
              by_kernel ? "the end of its kernel" : "what came later");
}

/// Whom it waits for: a peer, where a proxy's step is open; else the kernel, which waits by itself.
void say_stalled(const nccl::Stalled& stalled) {
  const bool runs = stalled.reading == nccl::StallReading::kernel_running;
  std::printf("%s %llu on %s stands for %lld ms: ", text(stalled.func).c_str(),
              static_cast<unsigned long long>(stalled.sequence), text(stalled.group).c_str(),
              static_cast<long long>(stalled.waited_ns / 1'000'000));
  if (stalled.step >= 0) {
    std::printf("step %d on NCCL channel %d waits for rank %d\n", stalled.step,
                stalled.nccl_channel, stalled.peer);
  } else if (runs) {
    std::printf("its kernel runs on %u of %u NCCL channels and waits for the other ranks\n",
                static_cast<unsigned>(stalled.begun_channels - stalled.ended_channels),
                static_cast<unsigned>(stalled.nccl_channels));
  } else {
    std::printf("its kernel has not begun\n");
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return std::fprintf(stderr, "usage: nccl_watch FILE [stall=SECONDS,…]\n"), 2;
  const int rank = number_of("RANK", 0), ranks = number_of("WORLD_SIZE", 2);
  ringmain::Bus bus;
  std::promise<void> stands;
  std::atomic<bool> stood{false};
  const auto over = bus.channel<nccl::Evidence>().subscribe(say_over);
  const auto stalled = bus.channel<nccl::Stalled>().subscribe([&](const nccl::Stalled& one) {
    say_stalled(one);
    if (!one.asked && !stood.exchange(true)) stands.set_value();
  });
  // On one node nothing but the kernels shows an end: NCCL is asked for them as somebody listens.
  const auto kernels = bus.channel<nccl::KernelChannel>().subscribe([](const auto&) {});
  const auto options = nccl::Options::read(count == 3 ? words[2] : "stall=10");
  if (!options) return std::fprintf(stderr, "%s\n", options.error().message.c_str()), 2;
  auto source = nccl::Source::attach(bus, options.value());
  if (!source) return std::fprintf(stderr, "%s\n", source.error().message.c_str()), 1;

  nccl::ncclConfig_t config;
  config.commName = "dp:0";
  nccl::ncclComm_t comm = nullptr;
  void* gradients = nullptr;
  if (nccl::CommInitRankConfig(&comm, ranks, meet(words[1], rank), rank, &config) !=
          nccl::ncclSuccess ||
      nccl::MemAlloc(&gradients, kElements * sizeof(float)) != nccl::ncclSuccess) {
    std::printf("no communicator: %s\n", nccl::GetLastError(nullptr));
    return 77;  // without a GPU NCCL makes none
  }
  const int calls = rank == 0 ? kSteps + 1 : kSteps;
  for (int i = 0; i < calls; ++i) {
    const auto taken = nccl::AllReduce(gradients, gradients, kElements, nccl::ncclFloat32,
                                       nccl::ncclSum, comm, nullptr);
    if (taken != nccl::ncclSuccess) return 1;
  }
  if (rank == 0) {
    stands.get_future().wait();  // NCCL's source has noticed by itself
    const std::uint32_t asked = source.value().tell_stalled();  // and says it whenever it is asked
    (void)bus.flush(std::chrono::seconds(10));
    std::printf("%u under way when asked: given up\n", asked);
  }
  return nccl::CommAbort(comm) == nccl::ncclSuccess ? 0 : 1;
}
