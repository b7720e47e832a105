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
#include <cerrno>
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

#include "ringmain/bus/bus.hpp"

#include "ringmain/adapters/output_file.hpp"
#include "ringmain/adapters/sinks/json_lines/line.hpp"

namespace ringmain::sinks {

/// Where the lines go. After the first write that failed (a full disk, a closed pipe) nothing more
/// is written, so that no torn line is followed by others; the lines are counted. Threads: any.
class LineFile {
 public:
  struct Figures {
    std::uint64_t written = 0;
    std::uint64_t lost = 0;  // not known to be written
    std::string error;       // one sentence about the first failure, or ""
  };

  LineFile(std::FILE* to, std::string name, bool owned)
      : to_(to), name_(std::move(name)), owned_(owned) {}
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;
  ~LineFile() { close(); }

  void add(const EventView& event) {
    const std::lock_guard lock(mutex_);
    if (!introduced_) origin_.read_clocks();
    append_json_line(text_, event, &origin_, !std::exchange(introduced_, true));
    ++lines_;
    if (text_.size() >= kBytesHeld) write();
  }
  /// Writes what is held: called whenever no more events are at hand.
  void flush() {
    const std::lock_guard lock(mutex_);
    write();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    write();
    if (to_ == nullptr) return;
    if (owned_ && std::fclose(to_) != 0) fail();  // a network file system may say so only now
    to_ = nullptr;
  }
  [[nodiscard]] Figures figures() const {
    const std::lock_guard lock(mutex_);
    return figures_;
  }

 private:
  static constexpr std::size_t kBytesHeld = 64 * 1024;

  void write() {
    const std::size_t bytes = text_.size();
    if (bytes == 0) return;
    const bool fine = to_ != nullptr && figures_.error.empty() &&
                      std::fwrite(text_.data(), 1, bytes, to_) == bytes && std::fflush(to_) == 0;
    if (!fine && figures_.error.empty()) fail();
    (fine ? figures_.written : figures_.lost) += lines_;
    text_.clear();
    lines_ = 0;
  }
  void fail() {
    const int why = errno;
    figures_.error = "cannot write to " + name_ + ": " + std::generic_category().message(why) +
                     (why == ENOSPC ? "; free some space there" : "");
  }

  mutable std::mutex mutex_;
  std::FILE* to_;
  const std::string name_;
  const bool owned_;
  Origin origin_ = Origin::here();
  bool introduced_ = false;
  std::string text_;
  std::uint64_t lines_ = 0;  // in text_
  Figures figures_;
};

/// Writes lines until it is destroyed, which takes up to 50 ms. The bus must outlive it; a FILE
/// that was given must, too, and stays open.
class JsonLines {
 public:
  /// Every event of the channels that match, present and future, from a thread of its own. It keeps
  /// up to SubscribeOptions::queue_events per channel; what comes on top is dropped: stats().
  static Result<JsonLines> attach(Bus& bus, std::FILE* to, std::string_view pattern = ">") {
    return JsonLines(to, "the given file", false).take(bus, pattern);
  }
  static Result<JsonLines> attach(Bus& bus, std::string_view path, std::string_view pattern = ">") {
    auto made = open(path);
    if (!made) return made;
    return std::move(made).value().take(bus, pattern);
  }

  /// A file that hears nothing yet: listen() says what. %r, %p, %h and %j in the path stand for
  /// rank, process, host and job, so that ranks do not overwrite one another; "-" is standard
  /// output. Which files are refused: adapters/output_file.hpp.
  static Result<JsonLines> open(std::string_view path) {
    if (path == "-" || path == "/dev/stdout") return JsonLines(stdout, "standard output", false);
    if (path == "/dev/stderr") return JsonLines(stderr, "standard error", false);
    // Anew: a forked child has its own number, and a launcher may have set its rank since.
    std::string expanded = expand_path(path, read_rank_identity());
    const auto to = registry::open_output(expanded);
    if (!to) return to.error();
    return JsonLines(to.value(), std::move(expanded), true);
  }
  /// Every event of one channel, on its worker: none is dropped here. Times are those of the
  /// source, or of the worker.
  template <Described E>
  void listen(Channel<E>& channel) {
    LineFile* lines = &core_->lines;
    core_->said.push_back(channel.subscribe_batch(
        [lines, name = channel.name(), &schema = channel.schema()](Batch<E> batch) {
          for (std::size_t i = 0; i < batch.size(); ++i) {
            const Stamp stamp = batch.stamp(i);
            lines->add({name, schema, reinterpret_cast<const std::byte*>(&batch[i]), stamp});
          }
          lines->flush();
        },
        {.name = "json_lines"}));
  }

  /// One event from somewhere else, and that no more are at hand. Threads: any.
  void hear(const EventView& event) { core_->lines.add(event); }
  void flush() { core_->lines.flush(); }

  /// Hears nothing more, writes what it holds and closes the file. An Error if any line was lost.
  Result<bool> close() {
    core_->end();
    core_->lines.close();
    const LineFile::Figures figures = core_->lines.figures();
    if (figures.error.empty()) return true;
    return Error{Error::Code::system,
                 figures.error + " (" + std::to_string(figures.lost) + " lines were not written)"};
  }
  [[nodiscard]] LineFile::Figures figures() const { return core_->lines.figures(); }
  /// Of attach(): what was dropped because the file was too slow.
  [[nodiscard]] SubscriberStats stats() const { return core_->box.stats(); }

 private:
  struct Core {
    Core(std::FILE* to, std::string name, bool owned) : lines(to, std::move(name), owned) {}
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
        while (box.drain([this](const EventView& event) { lines.add(event); }) != 0) {
        }
        lines.flush();
      }
    }

    LineFile lines;
    AnyMailbox box;
    std::vector<Subscription> said;
    std::jthread thread;
  };

  JsonLines(std::FILE* to, std::string name, bool owned)
      : core_(std::make_unique<Core>(to, std::move(name), owned)) {}

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
