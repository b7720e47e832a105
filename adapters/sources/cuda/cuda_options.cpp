#include "adapters/sources/cuda/cuda_options.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "adapters/did_you_mean.hpp"
#include "adapters/launch/option_words.hpp"

namespace ringmain::cuda {
namespace {

using words::quoted;

struct Flag {
  std::string_view name;
  bool Options::*member;
};
constexpr std::array<Flag, 5> kFlags{{{"hold", &Options::hold},
                                      {"own", &Options::own},
                                      {"driver", &Options::driver_only},
                                      {"wrapped", &Options::wrapped_only},
                                      {"lossless", &Options::lossless}}};
using Number = words::Number<Options, std::uint32_t>;
constexpr std::array<Number, 2> kNumbers{{{"lane", "lane_events", "events", &Options::lane_events,
                                           Options::kLaneEventsMin, Options::kLaneEventsMax},
                                          {"handles", "handles", "handles", &Options::handles,
                                           Options::kHandlesMin, Options::kHandlesMax}}};
constexpr std::string_view kCupti = "cupti";

std::string unknown(std::string_view name, std::string_view word) {
  std::vector<std::string_view> names{kCupti};
  for (const Flag& flag : kFlags) names.push_back(flag.name);
  for (const Number& number : kNumbers) names.push_back(number.name);
  return "cuda takes hold, own, driver, wrapped, lossless, lane=EVENTS, handles=NUMBER and "
         "cupti=PATH, divided by commas, and not " +
         quoted(word) + (name.empty() ? "" : registry::did_you_mean(name, names));
}

/// Takes one word into `options`. "" or what is wrong with it.
std::string read_word(std::string_view word, Options& options) {
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = word.substr(std::min(equals + 1, word.size()));
  for (const Flag& flag : kFlags) {
    if (name != flag.name) continue;
    if (equals != word.size())
      return "cuda takes " + std::string(name) + " without a value, and not " + quoted(word);
    options.*flag.member = true;
    return "";
  }
  for (const Number& number : kNumbers) {
    if (name == number.name) return number.read("cuda", value, word, options);
  }
  if (name != kCupti) return unknown(name, word);
  // The processes of a run may be in other folders than the one who wrote this.
  if (value.empty() || value.front() != '/' || value.back() == '/') {
    return "cuda wants cupti= with the whole path of the library, such as "
           "cupti=/usr/local/cuda/lib64/libcupti.so.13, and not " +
           quoted(word);
  }
  options.cupti = value;
  return "";
}

}  // namespace

std::optional<Error> Options::fault() const {
  for (const Number& number : kNumbers) {
    if (auto wrong = number.fault("cuda::Options", *this)) return wrong;
  }
  return std::nullopt;
}

Result<Options> Options::read(std::string_view written) {
  Options made;
  const auto take = [&made](std::string_view word) { return read_word(word, made); };
  if (auto wrong = words::read_all("cuda", written, take, [](std::string_view) { return false; }))
    return std::move(*wrong);
  return made;
}

}  // namespace ringmain::cuda
