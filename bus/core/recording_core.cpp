#include "bus/core/recording_core.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "bus/core/schema_text.hpp"
#include "bus/pattern.hpp"
#include "bus/rank.hpp"

namespace ringmain::detail {
namespace {

namespace flight = engine::flight;

flight::RingFileOptions file_options(const RecordOptions& options) {
  const RankIdentity me = read_rank_identity();
  flight::RingFileOptions of;
  std::error_code none;
  if (!options.folder.empty())  // where that cannot be said it is refused as it stands
    of.folder = std::filesystem::absolute(options.folder, none).string();
  if (none) of.folder = options.folder;
  of.file_bytes = options.file_bytes;
  of.ring_bytes = options.ring_bytes;
  of.kept = options.files_kept;
  of.identity = {me.rank,    me.local_rank, me.world_size, me.local_world_size,
                 me.attempt, me.host,       me.job,        me.launcher};
  return of;
}

std::vector<std::string_view> views_of(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

}  // namespace

Result<std::vector<std::string>> patterns_of(std::string_view list) {
  const auto refused = [](std::string why) { return Error{Error::Code::refused, std::move(why)}; };
  std::vector<std::string> patterns;
  for (std::size_t at = 0; at <= list.size();) {
    const std::string_view one = list.substr(at, list.find(',', at) - at);
    at += one.size() + 1;
    if (one.empty()) {
      return refused(
          "a pattern of channels to record is empty; give names such as train.step, "
          "or patterns such as collective.>,train.*");
    }
    const bool odd = std::any_of(one.begin(), one.end(), [](char c) {
      return static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
    });
    if (odd) {
      return refused(
          "a pattern of channels to record has a space, a line end or another control character in "
          "it; join several by commas alone, as collective.>,train.*");
    }
    if (std::string fault = fault_of_pattern(one); !fault.empty()) return refused(std::move(fault));
    patterns.emplace_back(one);
  }
  if (patterns.size() > flight::Recording::kPatternsMax) {
    return refused("a recording has " + std::to_string(flight::Recording::kPatternsMax) +
                   " patterns at most, and these are " + std::to_string(patterns.size()));
  }
  return patterns;
}

RecordingCore::RecordingCore(std::vector<std::string> patterns, RecordOptions options)
    : patterns_(std::move(patterns)),
      options_(std::move(options)),
      ring_(new flight::Recording(flight::RingFile::open(file_options(options_)),
                                  views_of(patterns_))) {
  begin_mirroring();
}

RecordingCore::~RecordingCore() {
  if (!forked()) end_mirroring();
}

void RecordingCore::add(std::uint32_t id, std::string_view name) noexcept {
  (void)file().add_name(id, name);
}

std::size_t RecordingCore::pattern_of(std::string_view channel) const noexcept {
  const auto found = std::find_if(patterns_.begin(), patterns_.end(), [channel](const auto& one) {
    return pattern_matches(one, channel);
  });
  return static_cast<std::size_t>(found - patterns_.begin());
}

bool RecordingCore::matches(std::string_view channel) const noexcept {
  return pattern_of(channel) != patterns_.size();
}

bool RecordingCore::apply(engine::ChannelCore& channel) {
  const std::string& name = channel.options().name;
  const std::size_t pattern = pattern_of(name);
  if (pattern == patterns_.size()) return false;
  const auto& schema = *static_cast<const Schema*>(channel.options().schema);
  (void)file().add_schema(schema.hash, text_of(schema));
  flight::OperationRule operation;
  for (const OperationRule& rule : options_.operations) {
    if (rule.schema == schema.hash) operation = rule;
  }
  channel.set_recorded(place_, ring_->add_channel(name, pattern, schema.hash, operation));
  return true;
}

void RecordingCore::leave(engine::ChannelCore& channel) noexcept {
  if (matches(channel.options().name)) channel.set_recorded(place_, nullptr);
}

void RecordingCore::end() noexcept {
  if (forked() || std::exchange(ended_, true)) return;
  if (host_ != nullptr) host_->end_recording(*this);
  keeps_ = nullptr;
}

}  // namespace ringmain::detail

namespace ringmain {

void Recording::reset() noexcept {
  if (core_ == nullptr) return;
  core_->end();
  std::exchange(core_, nullptr)->release();
}

std::string Recording::path() const {
  return core_ != nullptr ? core_->file().path() : std::string();
}

std::string Recording::complaint() const {
  return core_ != nullptr ? core_->file().complaint() : std::string();
}

}  // namespace ringmain
