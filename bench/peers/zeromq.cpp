// Peer: ZeroMQ inproc, PUSH to PULL; every publishing thread has a socket of its own.
#include <cstring>
#include <memory>
#include <zmq.hpp>

#include "bench/peers/async_peer.hpp"

namespace ringmain::bench {
namespace {

enum : int { kHighWater = 32768 };  // on either side
constexpr const char* kAddress = "inproc://bench";

zmq::socket_t push_socket(zmq::context_t& context) {
  zmq::socket_t socket(context, zmq::socket_type::push);
  socket.set(zmq::sockopt::sndhwm, static_cast<int>(kHighWater));
  socket.set(zmq::sockopt::linger, 0);
  socket.connect(kAddress);
  return socket;
}
template <class E>
bool send(zmq::socket_t& socket, const E& event, zmq::send_flags flags) {
  return socket.send(zmq::buffer(&event, sizeof event), flags).has_value();
}

struct Zeromq {
  template <class E, class Hear>
  class System {
   public:
    enum : std::uint64_t { kPrime = 8192 };
    explicit System(Hear& hear) : call_(callback_of<E>(hear)) {
      pull_.set(zmq::sockopt::rcvhwm, static_cast<int>(kHighWater));
      pull_.bind(kAddress);
      push_ = push_socket(context_);
      worker_ = std::thread([this] { run(); });
    }
    System(const System&) = delete;
    System& operator=(const System&) = delete;
    ~System() {
      (void)send(push_, make_event<E>(kEnd, 0), zmq::send_flags::none);
      worker_.join();
    }
    template <class Make>
    bool push(Make&& make) {
      return send(push_, make(), zmq::send_flags::dontwait);
    }
    auto producer() {
      auto socket = std::make_shared<zmq::socket_t>(push_socket(context_));
      return [socket](auto make) { return send(*socket, make(), zmq::send_flags::none); };
    }

   private:
    void run() {
      pin_worker();
      zmq::message_t message;
      for (;;) {
        if (!pull_.recv(message)) continue;
        E event;
        std::memcpy(&event, message.data(), sizeof event);
        if (event.number == kEnd) return;
        call_(event);
      }
    }
    std::function<void(const E&)> call_;
    zmq::context_t context_{0};  // inproc needs no thread of its own
    zmq::socket_t pull_{context_, zmq::socket_type::pull};
    zmq::socket_t push_;
    std::thread worker_;
  };
};

[[maybe_unused]] const bool kAdded = add_async_peer<Zeromq>("zeromq_inproc");

}  // namespace
}  // namespace ringmain::bench
