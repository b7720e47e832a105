// A library of somebody else's, which Python loads: it calls for operations, and says their ends,
// in a thread that has never run Python.
#include <array>
#include <cstdint>
#include <thread>

#include "adapters/sources/collective/communicator.hpp"

using namespace ringmain;

/// How many of `count` all-reduces were refused. The bus is that at the address.
extern "C" int issue_in_another_thread(void* bus, const char* group, int rank, int count) {
  int refused = 0;
  std::thread([&] {
    const auto comm = collective::Communicator::find(*static_cast<Bus*>(bus), group, rank);
    const std::array<float, 6> data{};
    const std::array<std::int64_t, 2> sizes{2, 3};
    const collective::Tensor tensor{data.data(), sizes, Name("float32"), sizeof data, 1};
    for (int i = 0; i < count; ++i) {
      auto issuing = comm.issue(collective::AllReduce{tensor, collective::ReduceOp::max, true});
      if (!issuing) {
        ++refused;
        continue;
      }
      const collective::Operation operation = issuing.operation();
      issuing.returned(&data);
      operation.completed();
    }
  }).join();
  return refused;
}
