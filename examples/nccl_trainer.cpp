// How does a training loop see, and bound, what it asks of NCCL? Its calls go through the wrapper:
// each is heard with its group, size and step, a hook refuses what is over a budget, and a
// communicator that hangs is given up by whoever watches it.
//
// It is built without NCCL, and runs with any: with libnccl.so.2, or with what stands in for it in
// the tests. A program that has <nccl.h> includes it first, and needs no other change. With
// `ringmain run --source nccl_calls -- ./train` a program needs no change at all, and cannot
// refuse.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include <ringmain/adapters/sources/collective/communicator.hpp>
#include <ringmain/adapters/sources/nccl/nccl.hpp>
#include <ringmain/bus/bus.hpp>
#include <ringmain/events/collective.hpp>

namespace {

namespace collective = ringmain::collective;
namespace nccl = ringmain::nccl;
using ringmain::Bus;
using ringmain::Verdict;

constexpr std::size_t kElements = 1 << 10;
constexpr std::uint64_t kBytesMost = 64 << 10;

/// One line for each operation, and for each that came to nothing.
struct Printed {
  explicit Printed(Bus& bus) {
    issued = bus.channel<collective::Issued>().subscribe([](const collective::Issued& one) {
      std::printf("%2llu %.*s of %llu bytes on %.*s\n",
                  static_cast<unsigned long long>(one.sequence),
                  static_cast<int>(one.op.view().size()), one.op.view().data(),
                  static_cast<unsigned long long>(one.bytes),
                  static_cast<int>(one.group.view().size()), one.group.view().data());
    });
    failed = bus.channel<collective::Failed>().subscribe([](const collective::Failed& one) {
      std::printf("   %.*s failed: %.*s\n", static_cast<int>(one.op.view().size()),
                  one.op.view().data(), static_cast<int>(one.reason.view().size()),
                  one.reason.view().data());
    });
  }
  ringmain::Subscription issued, failed;
};

/// A step: gradients in buckets, as one group, and the loss.
nccl::ncclResult_t step(nccl::ncclComm_t comm, std::vector<float>& gradients, float& loss) {
  (void)nccl::GroupStart();
  for (std::size_t at = 0; at < gradients.size(); at += kElements) {
    const auto taken = nccl::AllReduce(&gradients[at], &gradients[at], kElements, nccl::ncclFloat32,
                                       nccl::ncclSum, comm, nullptr);
    if (taken != nccl::ncclSuccess) break;
  }
  const auto launched = nccl::GroupEnd();
  if (launched != nccl::ncclSuccess) return launched;
  return nccl::AllReduce(&loss, &loss, 1, nccl::ncclFloat32, nccl::ncclSum, comm, nullptr);
}

}  // namespace

int main() {
  Bus bus;
  const Printed printed(bus);
  auto calls = nccl::Calls::attach(bus);
  if (!calls) return std::fprintf(stderr, "%s\n", calls.error().message.c_str()), 1;

  nccl::ncclUniqueId id{};
  nccl::ncclConfig_t config;
  config.commName = "dp:0";
  nccl::ncclComm_t comm = nullptr;
  if (nccl::GetUniqueId(&id) != nccl::ncclSuccess ||
      nccl::CommInitRankConfig(&comm, 1, id, 0, &config) != nccl::ncclSuccess) {
    std::printf("no communicator: %s\n", nccl::GetLastError(nullptr));
    return 77;  // without a GPU NCCL makes none
  }

  const ringmain::Name over("over the budget of 64 KiB");
  const auto group = nccl::communicator_of(comm);
  auto budget = group.pre_hook([over](const collective::PreHookArgs& args) {
    for (const auto& tensor : collective::view_of(*args.arguments).input) {
      if (tensor.bytes > kBytesMost) return Verdict::veto(over);
    }
    return Verdict::allow();
  });
  if (!budget) return std::fprintf(stderr, "%s\n", budget.error().message.c_str()), 1;

  std::vector<float> gradients(2 * kElements, 1.0F);
  float loss = 1.0F;
  for (int i = 0; i < 2; ++i) {
    if (step(comm, gradients, loss) != nccl::ncclSuccess) return 1;
  }
  std::vector<float> embedding(32 << 10);
  const auto refused = nccl::AllReduce(embedding.data(), embedding.data(), embedding.size(),
                                       nccl::ncclFloat32, nccl::ncclSum, comm, nullptr);
  std::printf("too large: %s\n", nccl::GetErrorString(refused));

  // Whoever watches may give it up, by the group's name: hooks first, then NCCL's own abort.
  const auto aborted = group.abort("no progress for 10 s", "watchdog");
  std::printf("aborted, with %u operations open\n", aborted.operations);
  const bool is_over = nccl::CommDestroy(comm) == nccl::ncclSuccess;  // it is gone already
  return bus.flush(std::chrono::seconds(10)) && is_over && refused == nccl::ncclInvalidUsage ? 0
                                                                                             : 1;
}
