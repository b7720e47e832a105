// What a plugin that stands behind ringmain's is told to do, and how it was called.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace ringmain::nccl {

struct FakeCall {
  enum What : std::uint8_t { init, start, stop, record, finalize };
  What what = init;
  std::uint64_t type = 0;  // record: the state
  void* context = nullptr;
  void* parent = nullptr;
  void* handle = nullptr;
  bool has_args = false;  // record
};

struct FakePlugin {
  std::vector<FakeCall> calls;
  int wanted = 0;
  int* mask = nullptr;
  bool refuses = false;  // init fails
  bool fails = false;    // start gives a handle, and says that it failed
  bool gives_no_handle = false;
  bool slow = false;
  int throws_in = -1;  // a FakeCall::What
  bool throws_what_is_no_exception = false;
  std::function<void(const FakeCall&)> on_start{};  // before it returns
  int contexts = 0;
  int handles = 0;
};

}  // namespace ringmain::nccl

extern "C" ringmain::nccl::FakePlugin* fake_plugin();
