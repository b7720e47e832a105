// What a program did with CUDA, line by line, in its own numbers: all that the oracle is given.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringmain::cuda::hazards {

enum class What : std::uint8_t {
  stream_made,  // blocking or not
  record,
  wait,
  access,  // a use, or an allocation or deallocation on a stream
  clear,   // memory was given to a new buffer, or taken back by the host
  begin_event_wait,
  begin_stream_wait,
  begin_device_wait,
  end_wait  // of the same thread's begin
};

struct Line {
  What what = What::access;
  int stream = 0;  // 0: the legacy one; others have a number of their own for each life
  int event = 0;   // the same of events
  std::uint64_t begin = 0, end = 0;  // bytes
  bool flag = false;                 // access: writes; stream_made: blocking
  bool captured = false;             // it became a node of a graph and was not done
  bool unsized = false;              // a deallocation of what was allocated before the attachment
  int thread = 0;
};

struct Account {
  std::vector<Line> lines;
  std::size_t attached_at = 0;  // the first line after it
  bool captured_then = false;   // a stream was capturing at that moment
};

}  // namespace ringmain::cuda::hazards
