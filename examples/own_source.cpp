// A source of your own: an event, a class that publishes it, and one line that gives it a name.
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <ringmain/adapters/registry.hpp>
#include <ringmain/bus/bus.hpp>

struct Load {
  double average;  // threads that ran or waited to, in the last minute
};
constexpr auto describe(ringmain::EventOf<Load>) {
  return ringmain::event("host.load", ringmain::field<&Load::average>("average"));
}

/// Says every 100 ms what a file such as /proc/loadavg begins with, until it is destroyed.
class HostLoad final : public ringmain::registry::Source {
 public:
  using Opened = ringmain::Result<std::unique_ptr<HostLoad>>;
  static Opened open(ringmain::Bus& bus, std::string_view argument) {  // what follows "host_load:"
    const std::string file(argument);
    if (!std::ifstream(file)) {
      return ringmain::Error{ringmain::Error::Code::system, "host_load cannot read " + file};
    }
    auto loads = bus.channel<Load>().publisher(ringmain::PublisherOptions{});
    if (!loads) return loads.error();
    return std::make_unique<HostLoad>(file, std::move(loads).value());
  }
  HostLoad(std::string file, ringmain::Publisher<Load> loads)
      : file_(std::move(file)),
        loads_(std::move(loads)),
        thread_([this](auto stop) { say(stop); }) {}

 private:
  void say(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    do {
      Load load{};
      if (std::ifstream(file_) >> load.average) (void)loads_.publish(load);  // losses are counted
    } while (!woken_.wait_for(lock, stop, std::chrono::milliseconds(100),
                              [&stop] { return stop.stop_requested(); }));
  }

  std::string file_;
  ringmain::Publisher<Load> loads_;  // its thread's alone
  std::mutex mutex_;
  std::condition_variable_any woken_;
  std::jthread thread_;  // the last member: it uses the others
};

int main() {
  using namespace ringmain::registry;
  Registry& registry = Registry::process();
  if (!registry.add(source_provider<HostLoad>({.argument = "FILE", .run = {.in_process = true}})))
    return 1;

  ringmain::Bus bus;
  auto lines = attach_sink(bus, "json_lines:-", "host.*");
  auto source = registry.open_source(bus, "host_load:/proc/loadavg");
  if (!lines || !source) return 1;
  source.value().reset();                              // it has spoken at least once
  if (!bus.flush(std::chrono::seconds(10))) return 1;  // the sink has it all
  return lines.value().close() && lines.value().heard() > 0 ? 0 : 1;
}
