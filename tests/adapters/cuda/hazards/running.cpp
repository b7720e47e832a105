// Runs a program over what stands in for CUDA, in two threads of which one acts at a time.
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "events/cuda_use.hpp"

#include "adapters/launch/tid.hpp"

#include "tests/adapters/cuda/fakes/cuda_types.hpp"
#include "tests/adapters/cuda/fakes/fake_cuda.h"
#include "tests/adapters/cuda/hazards/program.hpp"

namespace ringmain::cuda::hazards {
namespace {

constexpr std::uint64_t kBufferBytes = 4096;

/// A thread that does what it is told, while who tells it waits.
class Hand {
 public:
  Hand() : thread_([this] { work(); }) {}
  ~Hand() {
    tell([] {}, true);
    thread_.join();
  }
  void tell(std::function<void()> what, bool last = false) {
    std::unique_lock lock(mutex_);
    task_ = std::move(what);
    last_ = last;
    turn_.notify_all();
    turn_.wait(lock, [this] { return !task_; });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (bool last = false; !last;) {
      turn_.wait(lock, [this] { return static_cast<bool>(task_); });
      last = last_;
      auto task = task_;
      lock.unlock();
      task();
      lock.lock();
      task_ = nullptr;
      turn_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable turn_;
  std::function<void()> task_;
  bool last_ = false;
  std::thread thread_;
};

struct LiveStream {
  cudaStream_t handle = nullptr;
  int life = 0;
  bool blocking = true;
  int capture = 0;     // not 0: which one it is part of
  bool begun = false;  // it is where that one was begun
};
struct LiveEvent {
  cudaEvent_t handle = nullptr;
  int life = 0;
  int capture = 0;  // its last record is a node of that one
};
struct LiveBuffer {
  std::uint64_t address = 0;
  bool ordered = false;  // it is of a pool
  bool before = false;   // it was allocated before the attachment
  bool freed = false;  // on a stream; to use it yet is the program's mistake, which is to be found
};

class Runner {
 public:
  Runner(const Program& program, Bus& bus) : program_(program), uses_(bus.channel<BufferUse>()) {}

  Account run(const std::function<void()>& attach) {
    streams_[0] = {};
    for (std::size_t i = 0; i < program_.deeds.size(); ++i) {
      if (i == program_.attach_at) note_attachment(attach);
      tell(program_.deeds[i]);
    }
    end_all();
    return std::move(account_);
  }

 private:
  void note_attachment(const std::function<void()>& attach) {
    account_.attached_at = account_.lines.size();
    for (auto& [number, buffer] : buffers_) buffer.before = true;
    for (const auto& [number, stream] : streams_)
      account_.captured_then = account_.captured_then || stream.capture != 0;
    attach();
    // From here on it is known that nothing else captures, unless something does.
    if (!account_.captured_then) tell({.does = Does::synchronize_device});
  }
  void tell(const Deed& deed) {
    (deed.thread == 0 ? first_ : second_).tell([this, &deed] { act(deed); });
  }
  void end_all() {
    for (auto& [number, stream] : streams_) {
      if (stream.begun) tell({.does = Does::end_capture, .stream = number});
    }
    for (int buffer = 0; buffer < 8; ++buffer) tell({.does = Does::free, .buffer = buffer});
    for (auto& [number, event] : std::map(events_))
      tell({.does = Does::end_event, .event = number});
    for (auto& [number, stream] : std::map(streams_))
      if (number >= 2 && number < 100) tell({.does = Does::end_stream, .stream = number});
  }

  /// The thread's own default stream has a number and a life for each thread.
  LiveStream* stream_of(const Deed& deed) {
    if (deed.stream == 1) {
      LiveStream& own = streams_[100 + deed.thread];
      own.life = -1 - deed.thread;
      own.handle = cudaStreamPerThread;
      return &own;
    }
    const auto found = streams_.find(deed.stream);
    return found == streams_.end() ? nullptr : &found->second;
  }
  LiveEvent* event_of(const Deed& deed) {
    const auto found = events_.find(deed.event);
    return found == events_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool captures(bool only_blocking) const {
    for (const auto& [number, stream] : streams_) {
      if (stream.capture != 0 && (stream.blocking || !only_blocking)) return true;
    }
    return false;
  }
  /// Work may be put on it, or it may be waited for.
  [[nodiscard]] bool is_free(const Deed& deed, const LiveStream& stream) const {
    return stream.capture == 0 && (deed.stream != 0 || !captures(true));
  }
  void note(Line line) { account_.lines.push_back(line); }

  void act(const Deed& deed) {
    switch (deed.does) {
      case Does::make_stream:
        return make_stream(deed);
      case Does::end_stream:
        return end_stream(deed);
      case Does::make_event:
        return make_event(deed);
      case Does::end_event:
        return end_event(deed);
      case Does::record:
        return record(deed);
      case Does::wait:
        return wait(deed);
      case Does::synchronize_event:
      case Does::synchronize_stream:
      case Does::synchronize_device:
        return synchronize(deed);
      case Does::allocate:
      case Does::allocate_async:
        return allocate(deed);
      case Does::free:
        return free(deed);
      case Does::free_async:
        return free_async(deed);
      case Does::use:
        return use(deed);
      case Does::begin_capture:
        return begin_capture(deed);
      case Does::end_capture:
        return end_capture(deed);
    }
  }

  void make_stream(const Deed& deed) {
    if (streams_.count(deed.stream) != 0) return;
    LiveStream made;
    const unsigned flags = deed.flag ? cudaStreamNonBlocking : 0;
    ASSERT_EQ(cudaStreamCreateWithFlags(&made.handle, flags), cudaSuccess);
    made.life = ++lives_;
    made.blocking = !deed.flag;
    streams_[deed.stream] = made;
    note({.what = What::stream_made, .stream = made.life, .flag = made.blocking});
  }
  void end_stream(const Deed& deed) {
    const LiveStream* const stream = deed.stream < 2 ? nullptr : stream_of(deed);
    if (stream == nullptr || stream->capture != 0) return;
    ASSERT_EQ(cudaStreamDestroy(stream->handle), cudaSuccess);
    streams_.erase(deed.stream);
  }
  void make_event(const Deed& deed) {
    if (events_.count(deed.event) != 0) return;
    LiveEvent made;
    ASSERT_EQ(cudaEventCreate(&made.handle), cudaSuccess);
    made.life = ++lives_;
    events_[deed.event] = made;
  }
  void end_event(const Deed& deed) {
    const LiveEvent* const event = event_of(deed);
    if (event == nullptr) return;
    ASSERT_EQ(cudaEventDestroy(event->handle), cudaSuccess);
    events_.erase(deed.event);
  }

  void record(const Deed& deed) {
    LiveEvent* const event = event_of(deed);
    const LiveStream* const stream = stream_of(deed);
    if (event == nullptr || stream == nullptr) return;
    if (stream->capture == 0 && !is_free(deed, *stream)) return;
    ASSERT_EQ(cudaEventRecord(event->handle, stream->handle), cudaSuccess);
    event->capture = stream->capture;
    note({.what = What::record,
          .stream = stream->life,
          .event = event->life,
          .captured = stream->capture != 0});
  }
  void wait(const Deed& deed) {
    const LiveEvent* const event = event_of(deed);
    LiveStream* const stream = stream_of(deed);
    if (event == nullptr || stream == nullptr) return;
    if (event->capture != 0) {  // the stream becomes part of it
      const bool may = event->capture == live_capture_ && deed.stream > 1 &&
                       (stream->capture == 0 || stream->capture == live_capture_);
      if (!may) return;
      stream->capture = live_capture_;
    } else if (!is_free(deed, *stream)) {
      return;
    }
    ASSERT_EQ(cudaStreamWaitEvent(stream->handle, event->handle, 0), cudaSuccess);
    note({.what = What::wait,
          .stream = stream->life,
          .event = event->life,
          .captured = stream->capture != 0});
  }

  void synchronize(const Deed& deed) {
    const LiveEvent* const event = event_of(deed);
    const LiveStream* const stream = stream_of(deed);
    const char* call = "cudaDeviceSynchronize";
    Line begin{.what = What::begin_device_wait, .thread = deed.thread};
    if (deed.does == Does::synchronize_event) {
      if (event == nullptr || event->capture != 0) return;
      call = "cudaEventSynchronize";
      begin.what = What::begin_event_wait;
      begin.event = event->life;
    } else if (deed.does == Does::synchronize_stream) {
      if (stream == nullptr || !is_free(deed, *stream)) return;
      call = "cudaStreamSynchronize";
      begin.what = What::begin_stream_wait;
      begin.stream = stream->life;
    } else if (captures(false)) {
      return;
    }
    note(begin);
    if (deed.meanwhile >= 0) {
      meanwhile_ = program_.others[static_cast<std::size_t>(deed.meanwhile)];
      fake_cuda_during(
          call, [](void* self) { static_cast<Runner*>(self)->do_meanwhile(); }, this);
    }
    // Both are copied: what is done meanwhile may end them.
    const cudaEvent_t waited_event = event == nullptr ? nullptr : event->handle;
    const cudaStream_t waited_stream = stream == nullptr ? nullptr : stream->handle;
    if (deed.does == Does::synchronize_event) {
      ASSERT_EQ(cudaEventSynchronize(waited_event), cudaSuccess);
    } else if (deed.does == Does::synchronize_stream) {
      ASSERT_EQ(cudaStreamSynchronize(waited_stream), cudaSuccess);
    } else {
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    note({.what = What::end_wait, .thread = deed.thread});
  }
  /// Nothing may end or begin to capture what the call that is under way was given.
  void do_meanwhile() {
    const Does does = meanwhile_.does;
    if (does == Does::end_stream || does == Does::end_event || does == Does::begin_capture) return;
    tell(meanwhile_);
  }

  void allocate(const Deed& deed) {
    const bool async = deed.does == Does::allocate_async;
    const LiveStream* const stream = stream_of(deed);
    const auto before = buffers_.find(deed.buffer);
    if (before != buffers_.end() && !before->second.freed) return;
    if (async && (stream == nullptr || !is_free(deed, *stream))) return;
    void* made = nullptr;
    ASSERT_EQ(async ? cudaMallocAsync(&made, kBufferBytes, stream->handle)
                    : cudaMalloc(&made, kBufferBytes),
              cudaSuccess);
    const auto address = reinterpret_cast<std::uintptr_t>(made);
    forget_freed(address);
    buffers_[deed.buffer] = {address, async};
    note({.what = What::clear, .begin = address, .end = address + kBufferBytes});
    if (async) note_access(*stream, address, address + kBufferBytes, true, deed.thread);
  }
  /// The memory of a buffer that was freed on a stream is another one's.
  void forget_freed(std::uint64_t address) {
    for (auto one = buffers_.begin(); one != buffers_.end();)
      one = one->second.address == address ? buffers_.erase(one) : std::next(one);
  }
  void free(const Deed& deed) {
    const auto found = buffers_.find(deed.buffer);
    if (found == buffers_.end() || found->second.freed) return;
    const std::uint64_t address = found->second.address;
    ASSERT_EQ(cudaFree(reinterpret_cast<void*>(address)), cudaSuccess);
    buffers_.erase(found);
    note({.what = What::clear, .begin = address, .end = address + kBufferBytes});
  }
  void free_async(const Deed& deed) {
    const auto found = buffers_.find(deed.buffer);
    const LiveStream* const stream = stream_of(deed);
    if (found == buffers_.end() || found->second.freed || !found->second.ordered) return;
    if (stream == nullptr || !is_free(deed, *stream)) return;
    const std::uint64_t address = found->second.address;
    ASSERT_EQ(cudaFreeAsync(reinterpret_cast<void*>(address), stream->handle), cudaSuccess);
    found->second.freed = true;
    note_access(*stream, address, address + kBufferBytes, true, deed.thread);
    account_.lines.back().unsized = found->second.before;
  }

  void use(const Deed& deed) {
    const auto found = buffers_.find(deed.buffer);
    const LiveStream* const stream = stream_of(deed);
    if (found == buffers_.end() || stream == nullptr) return;
    if (stream->capture == 0 && !is_free(deed, *stream)) return;
    const std::uint64_t begin = found->second.address + deed.from * (kBufferBytes / 4);
    const std::uint64_t end = found->second.address + deed.upto * (kBufferBytes / 4);
    BufferUse said;
    said.address = begin;
    said.bytes = end - begin;
    said.stream = reinterpret_cast<std::uintptr_t>(stream->handle);
    said.context = program_.seed % 2 == 0 ? fake_cuda_context_uid() : 0;
    said.thread = static_cast<std::int32_t>(run::this_tid());
    said.access = deed.flag ? Access::write : Access::read;
    uses_.post(said);
    note_access(*stream, begin, end, deed.flag, deed.thread);
  }
  void note_access(const LiveStream& stream, std::uint64_t begin, std::uint64_t end, bool writes,
                   int thread) {
    note({.what = What::access,
          .stream = stream.life,
          .begin = begin,
          .end = end,
          .flag = writes,
          .captured = stream.capture != 0,
          .thread = thread});
  }

  void begin_capture(const Deed& deed) {
    LiveStream* const stream = deed.stream < 2 ? nullptr : stream_of(deed);
    if (stream == nullptr || live_capture_ != 0) return;
    ASSERT_EQ(cudaStreamBeginCapture(stream->handle, cudaStreamCaptureModeRelaxed), cudaSuccess);
    stream->capture = live_capture_ = ++lives_;
    stream->begun = true;
  }
  void end_capture(const Deed& deed) {
    LiveStream* const stream = deed.stream < 2 ? nullptr : stream_of(deed);
    if (stream == nullptr || !stream->begun) return;
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream->handle, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    for (auto& [number, other] : streams_) {
      if (other.capture == live_capture_) other.capture = 0;
    }
    stream->begun = false;
    live_capture_ = 0;
  }

  const Program& program_;
  Channel<BufferUse>& uses_;
  Account account_;
  std::map<int, LiveStream> streams_;
  std::map<int, LiveEvent> events_;
  std::map<int, LiveBuffer> buffers_;
  int lives_ = 0;
  int live_capture_ = 0;
  Deed meanwhile_;
  Hand first_, second_;  // last: they use the rest
};

}  // namespace

Account run(const Program& program, Bus& bus, const std::function<void()>& attach) {
  return Runner(program, bus).run(attach);
}

}  // namespace ringmain::cuda::hazards
