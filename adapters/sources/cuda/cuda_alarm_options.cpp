#include "adapters/sources/cuda/cuda_alarm_options.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "adapters/did_you_mean.hpp"
#include "adapters/launch/option_words.hpp"

namespace ringmain::cuda {
namespace {

using words::quoted;

using Number = words::Number<AlarmOptions, std::uint64_t>;
constexpr std::array<Number, 3> kNumbers{
    {{"warmup", "warmup_steps", "steps", &AlarmOptions::warmup_steps, 0, AlarmOptions::kStepsMax},
     {"rises", "rising_steps", "steps", &AlarmOptions::rising_steps, 1, AlarmOptions::kStepsMax},
     {"bytes", "rising_bytes", "bytes", &AlarmOptions::rising_bytes, 1, AlarmOptions::kBytesMax}}};
struct Kind {
  std::string_view name;
  bool AlarmOptions::*member;
};
constexpr std::array<Kind, 4> kKinds{{{"synchronization", &AlarmOptions::synchronization},
                                      {"leaks", &AlarmOptions::leaks},
                                      {"growth", &AlarmOptions::growth},
                                      {"races", &AlarmOptions::races}}};
constexpr std::string_view kAllow = "allow", kWithout = "without", kFile = "file";

std::string unknown(std::string_view name, std::string_view word) {
  std::vector<std::string_view> names{kAllow, kWithout, kFile};
  for (const Number& number : kNumbers) names.push_back(number.name);
  return "alarms takes allow=NAME, warmup=STEPS, rises=STEPS, bytes=BYTES, without=KIND and "
         "file=PATH, divided by commas, and not " +
         quoted(word) + (name.empty() ? "" : registry::did_you_mean(name, names));
}

std::string read_without(std::string_view value, std::string_view word, AlarmOptions& options) {
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) {
    names.push_back(kind.name);
    if (kind.name != value) continue;
    options.*kind.member = false;
    return "";
  }
  return "alarms wants without= with synchronization, leaks, growth or races, and not " +
         quoted(word) + registry::did_you_mean(value, names);
}

/// Takes one word into `options`. "" or what is wrong with it.
std::string read_word(std::string_view word, AlarmOptions& options) {
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = word.substr(std::min(equals + 1, word.size()));
  for (const Number& number : kNumbers) {
    if (name == number.name) return number.read("alarms", value, word, options);
  }
  if (name == kWithout) return read_without(value, word, options);
  if (name == kAllow) {
    if (value.empty())
      return "alarms wants allow= with a call, such as allow=cudaEventSynchronize, or a phase of "
             "a step, and not " +
             quoted(word);
    options.allowed.emplace_back(value);
    return "";
  }
  if (name != kFile) return unknown(name, word);
  // The processes of a run may be in other folders than the one who wrote this.
  if (value.empty() || value.front() != '/' || value.back() == '/')
    return "alarms wants file= with a whole path, such as file=/tmp/alarms-%r.txt, and not " +
           quoted(word);
  options.file = value;
  return "";
}

}  // namespace

std::optional<Error> AlarmOptions::fault() const {
  for (const Number& number : kNumbers) {
    if (auto wrong = number.fault("cuda::AlarmOptions", *this)) return wrong;
  }
  const bool any = std::any_of(kKinds.begin(), kKinds.end(),
                               [this](const Kind& kind) { return this->*kind.member; });
  if (std::find(allowed.begin(), allowed.end(), "") != allowed.end())
    return Error{Error::Code::refused,
                 "cuda::AlarmOptions::allowed has an empty name: give it a call or a phase"};
  if (any) return std::nullopt;
  return Error{Error::Code::refused,
               "no alarm is left: leave one of synchronization, leaks, "
               "growth and races"};
}

Result<AlarmOptions> AlarmOptions::read(std::string_view written) {
  AlarmOptions made;
  const auto take = [&made](std::string_view word) { return read_word(word, made); };
  if (auto wrong = words::read_all("alarms", written, take, [](std::string_view name) {
        return name == kAllow || name == kWithout;
      }))
    return std::move(*wrong);
  if (auto fault = made.fault()) return *fault;
  return made;
}

}  // namespace ringmain::cuda
