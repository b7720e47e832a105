#include "adapters/sources/replay/replay_provider.hpp"

#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "adapters/sources/replay/replay_source.hpp"

namespace ringmain::replay {
namespace {

class ReplaySource final : public registry::Source {
 public:
  static Result<std::unique_ptr<ReplaySource>> open(Bus& bus, std::string_view file) {
    LoadProgress progress;
    auto loaded = Recording::load({std::string(file)}, {}, {}, progress);
    if (!loaded) return loaded.error();
    if (loaded.value().store.size() == 0 && !loaded.value().faults.empty()) {
      return Error{Error::Code::refused, loaded.value().faults.front()};
    }
    auto made = std::unique_ptr<ReplaySource>(new ReplaySource(std::move(loaded).value()));
    auto attached = replay::Source::attach(bus, made->recording_, {});
    if (!attached) return attached.error();
    made->source_.emplace(std::move(attached).value());
    return made;
  }

 private:
  explicit ReplaySource(Recording recording) : recording_(std::move(recording)) {}

  Recording recording_;
  std::optional<replay::Source> source_;  // reads the recording
};

}  // namespace

registry::Provider provider() {
  registry::Provider said;
  said.name = "replay";
  said.summary = "a recorded Kineto trace, as `ringmain replay` plays it";
  said.argument = "FILE";
  said.run.refused =
      "replay plays a recording and watches no program; use `ringmain replay FILE` instead";
  return registry::source_provider<ReplaySource>(std::move(said));
}

}  // namespace ringmain::replay
