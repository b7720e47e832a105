#include "adapters/sources/heartbeat/heartbeat_provider.hpp"

#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "adapters/sources/heartbeat.hpp"

namespace ringmain::heartbeat {
namespace {

/// Leaves the period as it is where the argument is "". "" or what is wrong.
std::string read_period(std::string_view argument, int& period_ms) {
  const char* const end = argument.data() + argument.size();
  const auto read = std::from_chars(argument.data(), end, period_ms);
  if (argument.empty() || (read.ec == std::errc{} && read.ptr == end && period_ms > 0)) return "";
  return "heartbeat wants its period in ms, such as heartbeat:100, and not '" +
         std::string(argument.substr(0, 64)) + "'";
}

class HeartbeatSource final : public registry::Source {
 public:
  explicit HeartbeatSource(heartbeat::Source beats) : beats_(std::move(beats)) {}
  static Result<std::unique_ptr<HeartbeatSource>> open(Bus& bus, std::string_view argument) {
    int period_ms = 1000;
    if (const std::string fault = read_period(argument, period_ms); !fault.empty()) {
      return Error{Error::Code::refused, fault};
    }
    auto attached = heartbeat::Source::attach(bus, milliseconds(period_ms));
    if (!attached) return attached.error();
    return std::make_unique<HeartbeatSource>(std::move(attached).value());
  }

 private:
  heartbeat::Source beats_;
};

}  // namespace

registry::Provider provider() {
  return registry::source_provider<HeartbeatSource>(
      {.name = "heartbeat",
       .summary = "\"I am alive\", every second or every MS milliseconds",
       .argument = "[MS]",
       .argument_fault =
           [](std::string_view argument) {
             int period_ms = 0;
             return read_period(argument, period_ms);
           },
       .run = {.in_process = true}});
}

}  // namespace ringmain::heartbeat
