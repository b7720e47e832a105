// Every event as a line of JSON, in the file that its user names.
//
//   {"channel":"heartbeat.beat","time_ns":81726354,"publisher":3,"sequence":2,
//    "origin":"8f3c09d2517ab64e","count":2,"late_ns":52}
//
// A sink is a class in a file of its own and a line in adapters/builtin.cpp. Copy this one to write
// another; examples/own_sink.cpp is smaller still.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "../../bus/bus.hpp"

#include "../formats/json_line.hpp"
#include "../formats/line_file.hpp"
#include "../provider.hpp"

namespace ringmain::sinks {

class JsonLines final : public registry::Sink, public registry::Arrivals {
 public:
  static registry::Provider provider() {
    return registry::sink_provider<JsonLines>(
        {.summary = "every event as a line of JSON; - is standard output", .argument = "FILE"});
  }

  /// %r, %p, %h and %j in the path stand for rank, process, host and job, so that ranks do not
  /// overwrite one another; "-" is standard output. Which files are refused:
  /// adapters/formats/output_open.hpp.
  static Result<std::unique_ptr<JsonLines>> open(std::string_view path) {
    if (path == "-" || path == "/dev/stdout") return of(stdout, STDOUT_FILENO, "standard output");
    if (path == "/dev/stderr") return of(stderr, STDERR_FILENO, "standard error");
    // Read again at each open: a forked child has another process id, and a launcher may have set
    // the rank since.
    std::string expanded = expand_path(path, read_rank_identity());
    auto to = formats::OutputFile::open(expanded);
    if (!to) return to.error();
    return std::make_unique<JsonLines>(std::move(to).value(), std::move(expanded));
  }
  /// To an OutputFile, or to a FILE of the caller's, which must outlive it and stays open.
  template <class To>
  JsonLines(To to, std::string name) : lines_(std::move(to), std::move(name)) {}

  void hear(const EventView& event) override {
    lines_.add([&](std::string& text) {
      if (!introduced_) origin_.read_clocks();
      formats::append_json_line(text, event, &origin_, !std::exchange(introduced_, true));
    });
  }
  void idle() override { lines_.flush(); }
  Result<bool> close() override {
    lines_.close();
    const formats::LineFile::Figures figures = lines_.figures();
    if (figures.error.empty()) return true;
    return Error{Error::Code::system, figures.error + " (" + std::to_string(figures.lost) +
                                          (figures.lost == 1 ? " line was" : " lines were") +
                                          " not written)"};
  }

  [[nodiscard]] std::uint64_t not_arrived() const noexcept override { return lines_.unwritten(); }
  void give_up() noexcept override { lines_.give_up(); }
  [[nodiscard]] formats::LineFile::Figures figures() const { return lines_.figures(); }

 private:
  /// Below a run it does not use the program's own FILE, so that a failed write does not show as an
  /// error there, and text that the program has buffered is not torn.
  static std::unique_ptr<JsonLines> of(std::FILE* stream, int fd, std::string name) {
    auto file = formats::run_started() == nullptr ? std::nullopt : formats::OutputFile::adopt(fd);
    if (file) return std::make_unique<JsonLines>(std::move(*file), std::move(name));
    return std::make_unique<JsonLines>(stream, std::move(name));
  }

  formats::LineFile lines_;
  Origin origin_ = Origin::here();
  bool introduced_ = false;
};

}  // namespace ringmain::sinks
