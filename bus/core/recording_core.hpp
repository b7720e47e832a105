// A recording of a bus: which channels it is of, and what its file must know of them. Not for users
// of the library.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../../engine/channel/channel_core.hpp"
#include "../../engine/flight/recording.hpp"

#include "../recording.hpp"
#include "name_mirror.hpp"

namespace ringmain::detail {

/// Which bus is it of? Implemented by the bus's core.
class RecordingHost {
 public:
  /// No channel that comes is recorded by it, and none that is there shows it to publishers.
  virtual void end_recording(RecordingCore& recording) noexcept = 0;

 protected:
  ~RecordingHost() = default;
};

/// Threads: any.
class RecordingCore final : public engine::Counted, private NameMirror {
 public:
  /// Opens the file. Throws std::bad_alloc, std::invalid_argument.
  RecordingCore(std::vector<std::string> patterns, RecordOptions options);
  ~RecordingCore() override;

  [[nodiscard]] engine::flight::RingFile& file() const noexcept { return ring_->file(); }
  /// Records the channel, if one of the patterns matches; the first that does names its ring. True:
  /// it is recorded. Throws std::bad_alloc.
  bool apply(engine::ChannelCore& channel);
  [[nodiscard]] bool matches(std::string_view channel) const noexcept;
  /// Shows it to no publisher of that channel any more.
  void leave(engine::ChannelCore& channel) noexcept;

  /// By the bus, under its lock.
  void set_place(std::size_t place) noexcept { place_ = place; }
  [[nodiscard]] std::size_t place() const noexcept { return place_; }
  /// Every second or so.
  void note() noexcept { ring_->note(); }
  /// The bus that it is of, which it keeps.
  void set_host(engine::Ref<engine::Counted> keeps, RecordingHost* host) noexcept {
    keeps_ = std::move(keeps);
    host_ = host;
  }
  void end() noexcept;

 private:
  void add(std::uint32_t id, std::string_view name) noexcept override;
  [[nodiscard]] std::size_t pattern_of(std::string_view channel) const noexcept;

  const std::vector<std::string> patterns_;
  const RecordOptions options_;
  engine::Ref<engine::flight::Recording> ring_;
  std::size_t place_ = 0;
  engine::Ref<engine::Counted> keeps_;
  RecordingHost* host_ = nullptr;
  bool ended_ = false;
};

/// The patterns of "collective.>,train.*", or what is wrong with them.
[[nodiscard]] Result<std::vector<std::string>> patterns_of(std::string_view list);

}  // namespace ringmain::detail
