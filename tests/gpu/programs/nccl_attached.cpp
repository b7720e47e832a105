// Does a program that has attached the source itself hear what it listens to, and nothing else,
// while listeners come and go, and while NCCL loads and unloads the plugin?
//
// usage: nccl_attached reload TIMES | mask TIMES. NCCL_PROFILER_PLUGIN names ringmain's plugin.
// One line of JSON. Exit status 77: no NCCL or no GPU; 4, 5: CUDA or NCCL refused; 6: the source
// could not be attached.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "bus/bus.hpp"

#include "adapters/sources/nccl/nccl_source.hpp"

#include "tests/gpu/programs/nccl_communicator.hpp"

namespace {

using namespace ringmain;
using namespace ringmain::nccl;  // NOLINT: NCCL's own names
using gpu::Job;

constexpr std::size_t kCount = 1024;

void to_self(const Job& job, const gpu::Communicator& on, void* memory) {
  job.nccl.must(job.nccl.GroupStart(), "ncclGroupStart");
  (void)job.nccl.Send(memory, kCount, ncclFloat32, 0, on.comm, on.stream);
  (void)job.nccl.Recv(static_cast<float*>(memory) + kCount, kCount, ncclFloat32, 0, on.comm,
                      on.stream);
  job.nccl.must(job.nccl.GroupEnd(), "ncclGroupEnd");
  gpu::must_cuda(cudaStreamSynchronize(on.stream), "cudaStreamSynchronize");
}

bool is_mapped(const char* name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) != std::string::npos) return true;
  }
  return false;
}

Source attached(Bus& bus) {
  auto made = Source::attach(bus, {});
  if (made) return std::move(made).value();
  std::fprintf(stderr, "%s\n", made.error().message.c_str());
  std::exit(6);
}

int reload(const Job& job, int times) {
  Bus bus;
  std::atomic<int> opened{0}, closed{0}, operations{0}, unmapped{0};
  const auto notices = bus.channel<PluginNotice>().subscribe([&](const PluginNotice& said) {
    opened += said.state == PluginState::opened;
    closed += said.state == PluginState::closed;
  });
  const auto heard = bus.channel<Operation>().subscribe([&](const Operation&) { ++operations; });
  const Source source = attached(bus);
  const gpu::Memory memory(2 * kCount * sizeof(float));
  for (int i = 0; i < times; ++i) {
    const gpu::Communicator on(job, "reload");
    to_self(job, on, memory.at);
    unmapped += !is_mapped("libnccl-profiler-ringmain.so");
  }
  const bool left = is_mapped("libnccl-profiler-ringmain.so");
  (void)bus.flush(std::chrono::seconds(30));
  const Counts counts = Source::counts();
  std::printf(
      "{\"times\": %d, \"opened\": %d, \"closed\": %d, \"operations\": %d, \"absent\": %d, "
      "\"mapped after\": %s, \"started\": %llu, \"over\": %llu}\n",
      times, opened.load(), closed.load(), operations.load(), unmapped.load(),
      left ? "true" : "false", static_cast<unsigned long long>(counts.started),
      static_cast<unsigned long long>(counts.stopped + counts.stale + counts.aborted));
  return 0;
}

/// Listeners come and go under one communicator: each call is heard if, and only if, somebody
/// listened when it was made.
int mask(const Job& job, int times) {
  Bus bus;
  const Source source = attached(bus);
  std::atomic<int> operations{0};
  int made_heard = 0, made_unheard = 0;
  const gpu::Memory memory(2 * kCount * sizeof(float));
  {
    const gpu::Communicator on(job, "mask");
    for (int i = 0; i < times; ++i) {
      std::optional<Subscription> listens;
      if (i % 2 == 1) {
        listens.emplace(
            bus.channel<Operation>().subscribe([&](const Operation&) { ++operations; }));
      }
      (void)bus.wait_told(std::chrono::seconds(30));
      to_self(job, on, memory.at);
      (i % 2 == 1 ? made_heard : made_unheard) += 2;
      (void)bus.flush(std::chrono::seconds(30));
    }
  }
  const Counts counts = Source::counts();
  std::printf(
      "{\"heard\": %d, \"made while heard\": %d, \"made unheard\": %d, \"started\": %llu, "
      "\"over\": %llu, \"published\": %llu}\n",
      operations.load(), made_heard, made_unheard, static_cast<unsigned long long>(counts.started),
      static_cast<unsigned long long>(counts.stopped + counts.stale + counts.aborted),
      static_cast<unsigned long long>(counts.published));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count == 3 ? words[1] : "";
  if (what != "reload" && what != "mask") {
    return std::fprintf(stderr, "usage: nccl_attached reload TIMES | mask TIMES\n"), 2;
  }
  GpuNccl nccl;
  gpu::take_gpu();
  const Job job{nccl, 0, 1, ""};
  return what == "mask" ? mask(job, std::atoi(words[2])) : reload(job, std::atoi(words[2]));
}
