// The sink `alarms`: a sentence for each alarm of CUDA's, and how many there were at the end, on
// standard error or in a file.
//
//   alarms: cudaStreamSynchronize waits for stream 0x55d0 in step 12 (forward), thread 4711
//   alarms: 57 synchronizations inside steps
//
// Alarms come from a worker, which must not wait for a file: they are kept until idle().
#include "adapters/sources/cuda/cuda_alarms_sink.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "bus/rank.hpp"

#include "adapters/formats/line_file.hpp"
#include "adapters/sources/cuda/cuda_alarms.hpp"

namespace ringmain::cuda {
namespace {

using formats::LineFile;
using formats::OutputFile;

std::string counted(std::uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

/// What the last line says.
std::string end_of(const Alarms::Figures& figures, const AlarmOptions& options) {
  std::string made;
  const auto add = [&made](std::uint64_t count, const char* one, const char* many) {
    if (count != 0) made += (made.empty() ? "" : ", ") + counted(count, one, many);
  };
  add(figures.synchronizations, "synchronization inside a step", "synchronizations inside steps");
  add(figures.leaked_events, "event was never deleted", "events were never deleted");
  add(figures.leaked_streams, "stream was never deleted", "streams were never deleted");
  add(figures.growths, "growth of memory", "growths of memory");
  add(figures.races, "pair of uses without an order", "pairs of uses without an order");
  if (figures.calls == 0) made = "no call of CUDA's was heard, and so none was judged";
  if (made.empty()) made = "none";
  const auto note = [&made](std::uint64_t count, const std::string& words) {
    if (count != 0) made += "; " + words;
  };
  note(figures.unjudged_uses,
       counted(figures.unjudged_uses, "use of a buffer was", "uses of buffers were") +
           " not judged" + (figures.calls == 0 ? "" : ", on streams that capture or may do so"));
  const bool wants_steps = options.synchronization || options.growth;
  note(wants_steps && figures.calls != 0 && figures.steps == 0 ? 1 : 0,
       "no training step was told, which synchronizations and growth are judged by");
  note(figures.without_handle,
       counted(figures.without_handle, "event or stream", "events and streams") +
           " came without a handle, as from a recording, and " +
           (figures.without_handle == 1 ? "was" : "were") + " not followed");
  note(figures.unkept, counted(figures.unkept, "cause, handle or use", "causes, handles or uses") +
                           " found no room");
  note(figures.restarts,
       "it began anew " + counted(figures.restarts, "time", "times") +
           ", as events had been lost or not heard: give the source more room (lane=)");
  return made;
}

class AlarmsSink final : public registry::Sink,
                         public registry::Subscribes,
                         public registry::Periodic,
                         public registry::Arrivals {
 public:
  static Result<std::unique_ptr<AlarmsSink>> open(std::string_view argument) {
    auto options = AlarmOptions::read(argument);
    if (!options) return options.error();
    std::string path = options.value().file;
    if (path.empty()) return to_standard_error(std::move(options).value());
    path = expand_path(path, read_rank_identity());
    auto to = OutputFile::open(path);
    if (!to) return to.error();
    return std::make_unique<AlarmsSink>(std::move(options).value(), std::move(to).value(),
                                        std::move(path));
  }
  /// To an OutputFile, or to a FILE that outlives it.
  template <class To>
  AlarmsSink(AlarmOptions options, To to, std::string name)
      : options_(std::move(options)), lines_(std::move(to), std::move(name)) {}

  void subscribe(Bus& bus) override {
    bus_ = &bus;
    alarms_.emplace(bus, options_, [this](const Alarm& alarm) { keep(sentence_of(alarm)); });
  }
  void unsubscribe() noexcept override {
    try {
      (void)alarms_->finish();
      (void)bus_->flush(std::chrono::seconds(1));  // so that other sinks hear the last ones
    } catch (...) {                                // no memory to say them
      failed_ = true;
    }
  }
  [[nodiscard]] SubscriberStats stats() const noexcept override { return alarms_->stats(); }

  void hear(const EventView&) override {}
  void idle() override {
    std::vector<std::string> due;
    {
      const std::lock_guard lock(mutex_);
      due.swap(due_);
    }
    for (const std::string& sentence : due) write(sentence);
    written_ += due.size();
    lines_.flush();
  }
  [[nodiscard]] milliseconds idle_every() const noexcept override { return milliseconds(100); }
  Result<bool> close() override {
    idle();
    if (alarms_) write(end_of(alarms_->figures(), options_));
    lines_.close();
    const LineFile::Figures figures = lines_.figures();
    if (failed_) return Error{Error::Code::no_memory, "there was no memory for the last alarms"};
    if (figures.error.empty()) return true;
    return Error{
        Error::Code::system,
        figures.error + " (" + counted(figures.lost, "line was", "lines were") + " not written)"};
  }

  [[nodiscard]] std::uint64_t not_arrived() const noexcept override {
    const std::uint64_t written = written_;
    return kept_ - written + lines_.unwritten();
  }
  void give_up() noexcept override { lines_.give_up(); }

 private:
  /// Below a run it does not use the program's own FILE: sinks/json_lines.hpp says why.
  static std::unique_ptr<AlarmsSink> to_standard_error(AlarmOptions options) {
    constexpr const char* kName = "standard error";
    auto file = formats::run_started() == nullptr ? std::nullopt : OutputFile::adopt(STDERR_FILENO);
    if (file) return std::make_unique<AlarmsSink>(std::move(options), std::move(*file), kName);
    return std::make_unique<AlarmsSink>(std::move(options), stderr, kName);
  }
  void keep(std::string sentence) {
    const std::lock_guard lock(mutex_);
    due_.push_back(std::move(sentence));
    ++kept_;
  }
  void write(const std::string& sentence) {
    lines_.add([&](std::string& text) { text += "alarms: " + sentence + "\n"; });
  }

  const AlarmOptions options_;
  LineFile lines_;
  std::mutex mutex_;
  std::vector<std::string> due_;  // at most one for each cause that there is room for, twice
  std::atomic<std::uint64_t> kept_{0}, written_{0};
  std::atomic<bool> failed_{false};
  Bus* bus_ = nullptr;
  std::optional<Alarms> alarms_;
};

}  // namespace

registry::Provider alarms_provider() {
  return registry::sink_provider<AlarmsSink>(
      {.name = "alarms",
       .summary = "a sentence for what in CUDA's calls deserves a look: needless waits, leaks, "
                  "growth, races",
       .argument = "[WORDS]",
       .argument_fault = [](std::string_view argument) {
         const auto options = AlarmOptions::read(argument);
         return options ? "" : options.error().message;
       }});
}

}  // namespace ringmain::cuda
