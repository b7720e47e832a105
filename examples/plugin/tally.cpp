// A plugin: a sink that counts events by channel and a source that ticks, in one library.
//
// Built by the CMakeLists.txt beside it, against an installed ringmain; tally.ringmain-plugin says
// what is in it, so that `ringmain providers` lists both without loading them.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <ringmain/adapters/plugin.hpp>

namespace example {

struct Tick {
  std::uint64_t number;
};
constexpr auto describe(ringmain::EventOf<Tick>) {
  return ringmain::event("example.tick", ringmain::field<&Tick::number>("number"));
}

/// Writes "channel count" lines to its file when it is closed.
class Tally final : public ringmain::registry::Sink {
 public:
  static ringmain::Result<std::unique_ptr<Tally>> open(std::string_view path) {
    const std::string expanded = ringmain::expand_path(path, ringmain::rank_identity());
    std::FILE* to = std::fopen(expanded.c_str(), "w");
    if (to == nullptr) {
      return ringmain::Error{ringmain::Error::Code::system, "tally cannot write to " + expanded};
    }
    return std::unique_ptr<Tally>(new Tally(to));
  }
  ~Tally() override {
    if (to_ != nullptr) std::fclose(to_);
  }

  void hear(const ringmain::EventView& event) override { ++counts_[std::string(event.channel())]; }
  ringmain::Result<bool> close() override {
    for (const auto& [channel, count] : counts_) {
      std::fprintf(to_, "%s %llu\n", channel.c_str(), static_cast<unsigned long long>(count));
    }
    if (std::fclose(std::exchange(to_, nullptr)) == 0) return true;
    return ringmain::Error{ringmain::Error::Code::system, "tally could not write all it counted"};
  }

 private:
  explicit Tally(std::FILE* to) : to_(to) {}

  std::FILE* to_;
  std::map<std::string, std::uint64_t> counts_;
};

/// Publishes as many ticks as it was told, 10 without, from a thread of its own.
class Ticks final : public ringmain::registry::Source {
 public:
  static ringmain::Result<std::unique_ptr<Ticks>> open(ringmain::Bus& bus, std::string_view count) {
    std::uint64_t n = 10;
    const char* const end = count.data() + count.size();
    if (!count.empty() && std::from_chars(count.data(), end, n).ptr != end) {
      return ringmain::Error{ringmain::Error::Code::refused,
                             "ticks wants a number, such as ticks:100"};
    }
    return std::unique_ptr<Ticks>(new Ticks(bus.channel<Tick>(), n));
  }

 private:
  Ticks(ringmain::Channel<Tick>& ticks, std::uint64_t n)
      : thread_([&ticks, n](const std::stop_token& stop) {
          for (std::uint64_t i = 1; i <= n && !stop.stop_requested(); ++i) ticks.post({i});
        }) {}

  std::jthread thread_;
};

}  // namespace example

RINGMAIN_PLUGIN(ringmain::plugin::sink<example::Tally>("tally"),
                ringmain::plugin::source<example::Ticks>("ticks"))
