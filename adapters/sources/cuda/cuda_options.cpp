#include "adapters/sources/cuda/cuda_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include "adapters/did_you_mean.hpp"

namespace ringmain::cuda {
namespace {

struct Flag {
  std::string_view name;
  bool Options::*member;
};
constexpr std::array<Flag, 5> kFlags{{{"hold", &Options::hold},
                                      {"own", &Options::own},
                                      {"driver", &Options::driver_only},
                                      {"wrapped", &Options::wrapped_only},
                                      {"lossless", &Options::lossless}}};
struct Number {
  std::string_view name;
  std::string_view field;
  std::string_view unit;
  std::uint32_t Options::*member;
  std::uint32_t least, most;
};
constexpr std::array<Number, 2> kNumbers{{{"lane", "lane_events", "events", &Options::lane_events,
                                           Options::kLaneEventsMin, Options::kLaneEventsMax},
                                          {"handles", "handles", "handles", &Options::handles,
                                           Options::kHandlesMin, Options::kHandlesMax}}};
constexpr std::string_view kCupti = "cupti";

/// As it stands in a sentence: bounded, and on one line.
std::string quoted(std::string_view written) {
  std::string made(written.substr(0, 64));
  std::replace_if(
      made.begin(), made.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return "'" + made + (written.size() > 64 ? "…'" : "'");
}

std::string unknown(std::string_view name, std::string_view word) {
  std::vector<std::string_view> names{kCupti};
  for (const Flag& flag : kFlags) names.push_back(flag.name);
  for (const Number& number : kNumbers) names.push_back(number.name);
  return "cuda takes hold, own, driver, wrapped, lossless, lane=EVENTS, handles=NUMBER and "
         "cupti=PATH, "
         "divided by commas, and not " +
         quoted(word) + (name.empty() ? "" : registry::did_you_mean(name, names));
}

std::string read_number(const Number& number, std::string_view value, std::string_view word,
                        Options& options) {
  const char* const end = value.data() + value.size();
  std::uint32_t read = 0;
  const auto [stopped, fault] = std::from_chars(value.data(), end, read);
  if (value.empty() || fault != std::errc{} || stopped != end || read < number.least ||
      read > number.most) {
    return "cuda wants " + std::string(number.name) + "= with a number of " +
           std::string(number.unit) + " from " + std::to_string(number.least) + " to " +
           std::to_string(number.most) + ", and not " + quoted(word);
  }
  options.*number.member = read;
  return "";
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
    if (name == number.name) return read_number(number, value, word, options);
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
    const std::uint32_t given = this->*number.member;
    if (given >= number.least && given <= number.most) continue;
    return Error{Error::Code::refused,
                 "cuda::Options::" + std::string(number.field) + " is " + std::to_string(given) +
                     ": give it a number of " + std::string(number.unit) + " from " +
                     std::to_string(number.least) + " to " + std::to_string(number.most)};
  }
  return std::nullopt;
}

Result<Options> Options::read(std::string_view written) {
  Options made;
  std::vector<std::string_view> named;
  for (std::size_t at = 0; !written.empty() && at <= written.size();) {
    const std::size_t end = std::min(written.find(',', at), written.size());
    const std::string_view word = written.substr(at, end - at);
    at = end + 1;
    if (std::string fault = read_word(word, made); !fault.empty())
      return Error{Error::Code::refused, std::move(fault)};
    const std::string_view name = word.substr(0, word.find('='));
    if (std::find(named.begin(), named.end(), name) != named.end())
      return Error{Error::Code::refused,
                   "cuda takes " + std::string(name) + " once, and here it is twice"};
    named.push_back(name);
  }
  return made;
}

}  // namespace ringmain::cuda
