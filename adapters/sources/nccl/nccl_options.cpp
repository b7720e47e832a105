#include "adapters/sources/nccl/nccl_options.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "adapters/did_you_mean.hpp"
#include "adapters/launch/option_words.hpp"

namespace ringmain::nccl {
namespace {

using words::quoted;

using Number = words::Number<Options, std::uint32_t>;
constexpr std::array<Number, 2> kNumbers{
    {{"lane", "lane_events", "events", &Options::lane_events, Options::kLaneEventsMin,
      Options::kLaneEventsMax},
     {"stall", "stall_seconds", "seconds", &Options::stall_seconds, Options::kStallSecondsMin,
      Options::kStallSecondsMax}}};
constexpr std::string_view kKernel = "kernel", kSteps = "steps", kDoor = "door";

std::string unknown(std::string_view name, std::string_view word) {
  std::vector<std::string_view> names{kKernel, kSteps, kDoor};
  for (const Number& number : kNumbers) names.push_back(number.name);
  return "nccl takes kernel=always, kernel=never, steps=never, door=never, door=steps, "
         "door=all, lane=EVENTS and stall=SECONDS, divided by commas, and not " +
         quoted(word) + (name.empty() ? "" : registry::did_you_mean(name, names));
}

/// Takes one word into `options`. "" or what is wrong with it.
std::string read_word(std::string_view word, Options& options) {
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = word.substr(std::min(equals + 1, word.size()));
  for (const Number& number : kNumbers) {
    if (name == number.name) return number.read("nccl", value, word, options);
  }
  if (name == kKernel) {
    if (value != "always" && value != "never") {
      return "nccl takes kernel=always or kernel=never, and not " + quoted(word);
    }
    options.kernel_channels = value == "always" ? KernelChannels::always : KernelChannels::never;
    return "";
  }
  if (name == kSteps) {
    if (value != "never") {
      return "nccl takes steps=never, and not " + quoted(word) + "; without it steps are told";
    }
    options.proxy_steps = false;
    return "";
  }
  if (name == kDoor) {
    if (value != "never" && value != "steps" && value != "all") {
      return "nccl takes door=never, door=steps or door=all, and not " + quoted(word) +
             "; without it operations and proxies are asked for while there is a door";
    }
    options.door = value == "never"   ? DoorAsks::never
                   : value == "steps" ? DoorAsks::steps
                                      : DoorAsks::all;
    return "";
  }
  return unknown(name, word);
}

}  // namespace

std::optional<Error> Options::fault() const {
  for (const Number& number : kNumbers) {
    if (auto wrong = number.fault("nccl::Options", *this)) return wrong;
  }
  return std::nullopt;
}

Result<Options> Options::read(std::string_view written) {
  Options made;
  const auto take = [&made](std::string_view word) { return read_word(word, made); };
  if (auto wrong = words::read_all("nccl", written, take, [](std::string_view) { return false; }))
    return std::move(*wrong);
  return made;
}

}  // namespace ringmain::nccl
