// Does the source hear in a recording what it heard on the machine that the recording is from?
//
// Makes the recorded calls over the libraries that stand in for NVIDIA's: each with its number, its
// nesting, its result and a parameter struct with what it was given. Who listens cannot tell. Calls
// of different threads, which may have overlapped, come one after another, in the order of their
// entries.
//
// usage: replay_recording FILE
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <cuda.h>

#include "adapters/sources/cuda/cuda_argument_layouts.hpp"

#include "tests/adapters/cuda/fakes/fake_cuda.h"
#include "tests/gpu/programs/recording.hpp"

namespace gpu {
namespace {

namespace layout = ringmain::cuda::layout;
using ringmain::cuda::CallDomain;
using ringmain::cuda::CallRow;
using ringmain::cuda::CallShape;

struct Line {
  std::string site, name, handle, stream;
  int thread = 0, domain = 0, result = 0, priority = 0;
  std::uint32_t depth = 0, cbid = 0, flags = 0, correlation = 0, context = 0;
  std::uint64_t bytes = 0;
};

/// One call of a program, with those within it.
struct Call {
  Line enter, exit;
  std::vector<std::unique_ptr<Call>> inner;
};
using Calls = std::vector<std::unique_ptr<Call>>;

[[noreturn]] void fail(const std::string& why) {
  std::cerr << "replay_recording: " << why << '\n';
  std::exit(2);
}

/// An address that stands for "event:3"; a small number as it is.
std::uint64_t address_of(const std::string& token) {
  if (token == "-") return 0;
  const auto colon = token.find(':');
  if (colon == std::string::npos) return std::stoull(token);
  std::uint64_t of = 1;
  for (const char* const name : kClasses) {
    if (token.compare(0, colon, name) == 0) break;
    ++of;
  }
  return (of << 40) + (std::stoull(token.substr(colon + 1)) << 12);
}

Calls read(std::istream& file, std::uint32_t& version) {
  Calls calls;
  std::map<int, std::vector<Call*>> open;  // of each thread, the outermost first
  std::string text;
  if (!std::getline(file, text) || text != kFirstLine) fail("this is no recording");
  while (std::getline(file, text)) {
    std::istringstream words(text);
    if (text.rfind("# cupti ", 0) == 0) words.ignore(8) >> version;
    if (text.empty() || text[0] == '#') continue;
    Line line;
    words >> line.site >> line.thread >> line.depth >> line.domain >> line.cbid >> line.name >>
        line.result >> line.handle >> line.stream >> line.bytes >> line.flags >> line.priority >>
        line.correlation >> line.context;
    if (!words) fail("this line lacks columns: " + text);
    auto& stack = open[line.thread];
    if (line.site == "enter") {
      auto call = std::make_unique<Call>();
      call->enter = call->exit = line;
      Calls& where = stack.empty() ? calls : stack.back()->inner;
      where.push_back(std::move(call));
      stack.push_back(where.back().get());
    } else if (line.site == "exit" && !stack.empty()) {
      if (stack.back()->enter.name != line.name) fail("not the exit of its entry: " + text);
      stack.back()->exit = line;
      stack.pop_back();
    }
  }
  return calls;
}

/// What a call is given, and where it puts its answers, laid out as CUPTI shows it.
struct Parameters {
  alignas(8) unsigned char bytes[64] = {};
  std::size_t size = 0;
  std::uint64_t out = 0, pitch = 0;
  layout::PitchedPointer pitched{};
  layout::ChannelBits channels{8, 0, 0, 0};
  layout::ArrayDescription flat{};
  layout::Array3dDescription deep{};

  template <class Struct>
  bool are(const Struct& given) {
    static_assert(sizeof given <= sizeof bytes);
    std::memcpy(bytes, &given, sizeof given);
    size = sizeof given;
    return true;
  }
};

template <class T>
std::uint64_t at(T& place) {
  return reinterpret_cast<std::uint64_t>(&place);
}

/// False: shapes that no recorded program has used so far; such a call is made without parameters.
bool lay_out(const CallRow& row, const Call& call, Parameters& p) {
  const Line &in = call.enter, &out = call.exit;
  const std::uint64_t handle = address_of(in.handle), stream = address_of(out.stream);
  constexpr std::uint32_t kBytes = 1;  // the format of elements that are one byte: CU_AD_FORMAT_…8
  p.out = address_of(out.handle);
  p.pitch = out.bytes;
  p.pitched = {p.out, out.bytes};
  p.flat = {out.bytes, 1, kBytes, 1};
  p.deep = {out.bytes, 1, 1, kBytes, 1};
  switch (row.shape) {
    case CallShape::none:
      return true;
    case CallShape::handle:
      return p.are(layout::Handle{handle});
    case CallShape::stream:
      return p.are(layout::Handle{in.handle == "-" ? stream : handle});
    case CallShape::out_handle:
    case CallShape::stream_made:
      return p.are(layout::StreamMade{at(p.out)});
    case CallShape::event_made:
      return p.are(layout::EventMade{at(p.out), in.flags});
    case CallShape::stream_flags:
      return p.are(layout::StreamFlags{at(p.out), in.flags});
    case CallShape::stream_priority:
      return p.are(layout::StreamPriority{at(p.out), in.flags, in.priority});
    case CallShape::record:
      return p.are(layout::Record{handle, stream});
    case CallShape::record_flags:
      return p.are(layout::RecordFlags{handle, stream, in.flags});
    case CallShape::wait:
      return p.are(layout::Wait{stream, handle, in.flags});
    case CallShape::memory:
      return p.are(layout::Memory{at(p.out), in.bytes});
    case CallShape::memory_on_stream:
      return p.are(layout::MemoryOnStream{at(p.out), in.bytes, stream});
    case CallShape::memory_from_pool:
      return p.are(layout::MemoryFromPool{at(p.out), in.bytes, 0, stream});
    case CallShape::range:
      return p.are(layout::Range{handle, in.bytes});
    case CallShape::free_on_stream:
      return p.are(layout::FreeOnStream{handle, stream});
    case CallShape::pitched:
      return p.are(layout::Pitched{at(p.out), at(p.pitch), in.bytes, 1});
    case CallShape::pitched_3d:
      return p.are(layout::Pitched3d{at(p.pitched), {in.bytes, 1, 1}});
    case CallShape::array:
      return p.are(layout::Array{at(p.out), at(p.channels), out.bytes, 1});
    case CallShape::array_3d:
      return p.are(layout::Array3d{at(p.out), at(p.channels), {out.bytes, 1, 1}});
    case CallShape::array_described:
      return p.are(layout::ArrayDescribed{at(p.out), at(p.flat)});
    case CallShape::array_3d_described:
      return p.are(layout::ArrayDescribed{at(p.out), at(p.deep)});
    default:
      return false;
  }
}

void make(const Call& call, std::uint32_t version) {
  const auto domain = static_cast<CallDomain>(call.enter.domain);
  const CallRow* const row = ringmain::cuda::call_of(domain, call.enter.cbid, version);
  Parameters given;
  if (row != nullptr && !lay_out(*row, call, given)) {
    std::cerr << "without its parameters: " << call.enter.name << '\n';
  }
  struct Inner {
    const Call& call;
    std::uint32_t version;
  } inner{call, version};
  const char* const name = call.enter.name.c_str();
  if (!call.inner.empty()) {
    fake_cuda_during(
        name,
        [](void* with) {
          const auto& what = *static_cast<const Inner*>(with);
          for (const auto& one : what.call.inner) make(*one, what.version);
        },
        &inner);
  }
  fake_cuda_raise(call.enter.domain, call.enter.cbid, name, given.size > 0 ? given.bytes : nullptr,
                  given.size, call.exit.result);
}

}  // namespace
}  // namespace gpu

int main(int count, char** words) {
  if (count != 2) gpu::fail("usage: replay_recording FILE");
  std::ifstream file(words[1]);
  if (!file) gpu::fail(std::string("cannot be read: ") + words[1]);
  std::uint32_t version = 0;
  const gpu::Calls calls = gpu::read(file, version);
  if (calls.empty()) gpu::fail("no call was recorded");
  if (cuInit(0) != CUDA_SUCCESS) gpu::fail("there are no libraries to replay over");
  // Threads take their turns: each makes those of its calls that come next, then hands on.
  std::map<int, std::size_t> left;
  for (const auto& call : calls) ++left[call->enter.thread];
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (const auto& [thread, how_many] : left) {
    threads.emplace_back([&, thread = thread, how_many = how_many] {
      for (std::size_t made = 0; made < how_many; ++made) {
        std::size_t turn = next.load();
        while (calls[turn]->enter.thread != thread) {
          next.wait(turn);
          turn = next.load();
        }
        gpu::make(*calls[turn], version);
        if (turn + 1 < calls.size()) next.store(turn + 1);
        next.notify_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}
