// Programs of several streams, made by a seed and run over what stands in for CUDA, with an account
// of what they did.
//
// A program is a list of deeds that name streams, events and buffers by number. What would be wrong
// use of CUDA at its turn is left out, so that any part of a program is one, too, and a program
// that shows a difference can be made smaller.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bus/bus.hpp"

#include "tests/adapters/cuda/hazards/account.hpp"

namespace ringmain::cuda::hazards {

enum class Does : std::uint8_t {
  make_stream,
  end_stream,
  make_event,
  end_event,
  record,
  wait,
  synchronize_event,
  synchronize_stream,
  synchronize_device,
  allocate,
  free,
  allocate_async,
  free_async,
  use,
  begin_capture,
  end_capture,
};

struct Deed {
  Does does = Does::use;
  int stream = 0;  // 0: the legacy default one, 1: the thread's own, from 2 on those that are made
  int event = 0;
  int buffer = 0;
  unsigned from = 0, upto = 4;  // quarters of the buffer
  bool flag = false;            // use: writes; make_stream: non-blocking
  int thread = 0;
  int meanwhile = -1;  // of a synchronization: what another thread does before it ends
};

struct Program {
  std::uint64_t seed = 0;
  std::vector<Deed> deeds;
  std::vector<Deed> others;  // what is done meanwhile
  std::size_t attach_at = 0;
};

[[nodiscard]] Program make_program(std::uint64_t seed);
/// One deed a line.
[[nodiscard]] std::string to_text(const Program& program);

/// Runs it, calling `attach` before the deed at which the program is attached to, and publishes its
/// uses on the bus.
[[nodiscard]] Account run(const Program& program, Bus& bus, const std::function<void()>& attach);

}  // namespace ringmain::cuda::hazards
