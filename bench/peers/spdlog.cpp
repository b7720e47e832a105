// Peer: spdlog's asynchronous logger. It formats text, and its listener parses that again: this is
// what a log costs that is used as a bus.
#include <charconv>
#include <memory>
#include <spdlog/async.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

#include "bench/peers/async_peer.hpp"

namespace ringmain::bench {
namespace {

template <class E>
class CallSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit CallSink(std::function<void(const E&)> call) : call_(std::move(call)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const char* at = message.payload.begin();
    const char* end = message.payload.end();
    std::uint64_t number = 0;
    std::int64_t sent = 0;
    at = std::from_chars(at, end, number).ptr;
    if (at != end) std::from_chars(at + 1, end, sent);
    call_(make_event<E>(number, sent));
  }
  void flush_() override {}
  std::function<void(const E&)> call_;
};

struct Spdlog {
  template <class E, class Hear>
  class System {
   public:
    enum : std::uint64_t { kPrime = 8192 };
    explicit System(Hear& hear)
        : pool_(std::make_shared<spdlog::details::thread_pool>(65536, 1, [] { pin_worker(); })),
          logger_(std::make_shared<spdlog::async_logger>(
              "bench", std::make_shared<CallSink<E>>(callback_of<E>(hear)), pool_,
              spdlog::async_overflow_policy::block)) {}
    template <class Make>
    bool push(Make&& make) {
      const E event = make();
      logger_->info("{} {}", event.number, event.sent);
      return true;
    }
    auto producer() { return shared_producer(*this); }

   private:
    std::shared_ptr<spdlog::details::thread_pool> pool_;
    std::shared_ptr<spdlog::async_logger> logger_;
  };
};

[[maybe_unused]] const bool kAdded = add_async_peer<Spdlog>("spdlog_async");

}  // namespace
}  // namespace ringmain::bench
