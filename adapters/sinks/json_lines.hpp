// The smallest sink: one JSON line per event of any described channel. Copy this file to write
// another.
//
//   {"channel":"heartbeat.beat","time_ns":81726354,"publisher":3,"sequence":2,
//    "origin":"8f3c09d2517ab64e","count":2,"late_ns":52}
//
// A sink is a class that subscribes. This one can do so in two ways: attach() takes events out of a
// mailbox in its own thread, so that a slow disk holds up nobody and what does not fit is dropped
// and counted; listen() writes on the channel's worker, so that nothing is dropped and a slow disk
// holds up the publishers that block.
#pragma once
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "../../bus/bus.hpp"

#include "../formats/json_line.hpp"
#include "../formats/line_file.hpp"

namespace ringmain::sinks {

/// Writes lines until it is destroyed, which takes up to 50 ms. The bus must outlive it; a FILE
/// that was given must, too, and stays open.
class JsonLines {
 public:
  /// Every event of the channels that match, present and future, from a thread of its own. It keeps
  /// up to SubscribeOptions::queue_events per channel; what comes on top is dropped: stats().
  static Result<JsonLines> attach(Bus& bus, std::FILE* to, std::string_view pattern = ">") {
    return JsonLines(to, "the given file").take(bus, pattern);
  }
  static Result<JsonLines> attach(Bus& bus, std::string_view path, std::string_view pattern = ">") {
    auto made = open(path);
    if (!made) return made;
    return std::move(made).value().take(bus, pattern);
  }

  /// A file that hears nothing yet: listen() says what. %r, %p, %h and %j in the path stand for
  /// rank, process, host and job, so that ranks do not overwrite one another; "-" is standard
  /// output. Which files are refused: adapters/formats/output_open.hpp.
  static Result<JsonLines> open(std::string_view path) {
    if (path == "-" || path == "/dev/stdout") return of(stdout, STDOUT_FILENO, "standard output");
    if (path == "/dev/stderr") return of(stderr, STDERR_FILENO, "standard error");
    // Anew: a forked child has its own number, and a launcher may have set its rank since.
    std::string expanded = expand_path(path, read_rank_identity());
    auto to = formats::OutputFile::open(expanded);
    if (!to) return to.error();
    return JsonLines(std::move(to).value(), std::move(expanded));
  }
  /// Every event of one channel, on its worker: none is dropped here. Times are those of the
  /// source, or of the worker.
  template <Described E>
  void listen(Channel<E>& channel) {
    Core* core = core_.get();
    core_->said.push_back(channel.subscribe_batch(
        [core, name = channel.name(), &schema = channel.schema()](Batch<E> batch) {
          for (std::size_t i = 0; i < batch.size(); ++i) {
            const Stamp stamp = batch.stamp(i);
            core->add({name, schema, reinterpret_cast<const std::byte*>(&batch[i]), stamp});
          }
          core->lines.flush();
        },
        {.name = "json_lines"}));
  }

  /// One event from somewhere else, and that no more are at hand. Threads: any.
  void hear(const EventView& event) { core_->add(event); }
  void flush() { core_->lines.flush(); }

  /// Hears nothing more, writes what it holds and closes the file. An Error if any line was lost.
  Result<bool> close() {
    core_->end();
    core_->lines.close();
    const formats::LineFile::Figures figures = core_->lines.figures();
    if (figures.error.empty()) return true;
    return Error{Error::Code::system,
                 figures.error + " (" + std::to_string(figures.lost) + " lines were not written)"};
  }
  [[nodiscard]] formats::LineFile::Figures figures() const { return core_->lines.figures(); }
  /// As formats::LineFile's.
  [[nodiscard]] std::uint64_t unwritten() const noexcept { return core_->lines.unwritten(); }
  void give_up() noexcept { core_->lines.give_up(); }
  /// Of attach(): what was dropped because the file was too slow.
  [[nodiscard]] SubscriberStats stats() const { return core_->box.stats(); }

 private:
  struct Core {
    template <class To>
    Core(To to, std::string name) : lines(std::move(to), std::move(name)) {}
    ~Core() { end(); }
    void end() {
      said.clear();
      if (!thread.joinable()) return;
      thread.request_stop();
      thread.join();
    }
    void run(const std::stop_token& stop) {
      for (;;) {
        const bool last = stop.stop_requested();
        if (!box.wait_for(milliseconds(50)) && last) return;
        while (box.drain([this](const EventView& event) { add(event); }) != 0) {
        }
        lines.flush();
      }
    }

    void add(const EventView& event) {
      lines.add([&](std::string& text) {
        if (!introduced) origin.read_clocks();
        formats::append_json_line(text, event, &origin, !std::exchange(introduced, true));
      });
    }

    Origin origin = Origin::here();
    bool introduced = false;
    formats::LineFile lines;
    AnyMailbox box;
    std::vector<Subscription> said;
    std::jthread thread;
  };

  /// Below a run without the program's FILE: what cannot be written there is no fault of its own,
  /// and what it has not yet written is not torn.
  static JsonLines of(std::FILE* stream, int fd, std::string name) {
    auto file = formats::run_started() == nullptr ? std::nullopt : formats::OutputFile::adopt(fd);
    if (file) return JsonLines(std::move(*file), std::move(name));
    return JsonLines(stream, std::move(name));
  }
  template <class To>
  JsonLines(To to, std::string name)
      : core_(std::make_unique<Core>(std::move(to), std::move(name))) {}

  Result<JsonLines> take(Bus& bus, std::string_view pattern) && {
    core_->box = bus.mailbox(pattern, {.name = "json_lines"});
    try {
      core_->thread =
          std::jthread([core = core_.get()](const std::stop_token& stop) { core->run(stop); });
    } catch (const std::system_error& failed) {
      return Error{Error::Code::system, std::string("no thread for json_lines: ") + failed.what()};
    }
    return std::move(*this);
  }

  std::unique_ptr<Core> core_;
};

}  // namespace ringmain::sinks
