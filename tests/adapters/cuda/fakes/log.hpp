// What did the fake serve? A line of JSON for each call, where FAKE_CUDA_LOG names a file.
#pragma once
#include "tests/adapters/cuda/fakes/served.hpp"

namespace ringmain::fake {

/// {"n":7,"pid":1,"tid":1,"depth":1,"domain":2,"cbid":20,"name":"cudaMalloc","result":0,
///  "context":1,"handle":"0x7f4000000000","stream":null,"bytes":512,"flags":0,"priority":0,
///  "graph":"0x0","forbidden":false}. `n` is the order in which calls came in; a line is written
/// when its call returns.
void write_line(const Call& call, int result);

}  // namespace ringmain::fake
