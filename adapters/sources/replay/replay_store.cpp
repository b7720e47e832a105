#include "adapters/sources/replay/replay_store.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace ringmain::replay {
namespace {

constexpr std::size_t kEventBytes = sizeof(KinetoMapped);

/// All of `bytes` at `at`, through whatever interrupts; false with errno set.
bool write_all(int file, const void* from, std::size_t bytes, std::uint64_t at) {
  const auto* p = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t n = ::pwrite(file, p, bytes, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (n == 0) errno = ENOSPC;
      return false;
    }
    p += n;
    at += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool read_all(int file, void* to, std::size_t bytes, std::uint64_t at) {
  auto* p = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = ::pread(file, p, bytes, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (n == 0) errno = EIO;
      return false;
    }
    p += n;
    at += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

Error file_error(const char* what, const std::string& folder) {
  return Error{Error::Code::system,
               std::string("the events do not fit into memory, and a temporary file in ") + folder +
                   " cannot be " + what + ": " + std::generic_category().message(errno) +
                   "; make room there, set TMPDIR to another folder, or allow more memory"};
}

}  // namespace

ReplayStore::ReplayStore(std::uint64_t bytes_max)
    : bytes_max_(bytes_max),
      held_max_(static_cast<std::size_t>(std::clamp<std::uint64_t>(
          bytes_max / (kEventBytes + sizeof(Key)), kBlockEvents, 0xffffffffu))) {}

ReplayStore::ReplayStore(ReplayStore&& other) noexcept
    : bytes_max_(other.bytes_max_),
      held_max_(other.held_max_),
      blocks_(std::move(other.blocks_)),
      keys_(std::move(other.keys_)),
      events_(std::exchange(other.events_, 0)),
      runs_(std::move(other.runs_)),
      file_bytes_(std::exchange(other.file_bytes_, 0)),
      folder_(std::move(other.folder_)),
      file_(std::exchange(other.file_, -1)) {}

ReplayStore& ReplayStore::operator=(ReplayStore&& other) noexcept {
  std::swap(bytes_max_, other.bytes_max_);
  std::swap(held_max_, other.held_max_);
  blocks_.swap(other.blocks_);
  keys_.swap(other.keys_);
  std::swap(events_, other.events_);
  runs_.swap(other.runs_);
  std::swap(file_bytes_, other.file_bytes_);
  folder_.swap(other.folder_);
  std::swap(file_, other.file_);
  return *this;
}

ReplayStore::~ReplayStore() {
  if (file_ >= 0) ::close(file_);
}

std::optional<Error> ReplayStore::add(const KinetoMapped& event) {
  if (keys_.size() >= held_max_) {
    if (auto failed = spill()) return failed;
  }
  if (keys_.empty()) keys_.reserve(held_max_);  // untouched pages cost nothing
  const auto index = static_cast<std::uint32_t>(keys_.size());
  if (index / kBlockEvents == blocks_.size()) blocks_.emplace_back().reserve(kBlockEvents);
  blocks_[index / kBlockEvents].push_back(event);
  keys_.push_back({event.time_ns, index});
  ++events_;
  return std::nullopt;
}

std::optional<Error> ReplayStore::sort() {
  if (file_ >= 0) return spill();
  sort_keys();
  return std::nullopt;
}

void ReplayStore::sort_keys() {
  std::sort(keys_.begin(), keys_.end(), [](const Key& a, const Key& b) {
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.index < b.index;
  });
}

std::optional<Error> ReplayStore::open_file() {
  const char* chosen = std::getenv("TMPDIR");
  folder_ = chosen != nullptr && *chosen != '\0' ? chosen : "/var/tmp";
  file_ = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ >= 0) return std::nullopt;
  std::string path = folder_ + "/ringmain-XXXXXX";  // where the file system has no O_TMPFILE
  file_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (file_ < 0) return file_error("made", folder_);
  ::unlink(path.c_str());
  return std::nullopt;
}

/// Writes what is held as one sorted run.
std::optional<Error> ReplayStore::spill() {
  if (keys_.empty()) return std::nullopt;
  if (file_ < 0) {
    if (auto failed = open_file()) return failed;
  }
  sort_keys();
  const std::uint64_t begin = file_bytes_ / kEventBytes;
  std::vector<KinetoMapped> room;
  room.reserve(kBlockEvents);
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    room.push_back(held(keys_[i].index));
    if (room.size() < kBlockEvents && i + 1 < keys_.size()) continue;
    if (!write_all(file_, room.data(), room.size() * kEventBytes, file_bytes_)) {
      return file_error("written", folder_);
    }
    file_bytes_ += room.size() * kEventBytes;
    room.clear();
  }
  runs_.push_back({begin, file_bytes_ / kEventBytes});
  keys_.clear();
  for (auto& block : blocks_) block.clear();  // their memory serves the next run
  return std::nullopt;
}

ReplayStore::Reader::Reader(const ReplayStore& store) : store_(&store) {
  if (store.runs_.empty()) return;
  const std::uint64_t share = store.bytes_max_ / 4 / store.runs_.size() / kEventBytes;
  room_events_ = static_cast<std::size_t>(std::clamp<std::uint64_t>(share, 1, kBlockEvents));
  for (const Run& run : store.runs_) cursors_.push_back({run.begin, run.end, {}, 0});
  for (std::size_t i = 0; i < cursors_.size(); ++i) {
    if (auto filled = fill(i); !filled) failed_ = filled.error();
  }
}

/// Brings the run's next event to its cursor and announces it; false: the run is over.
Result<bool> ReplayStore::Reader::fill(std::size_t run) {
  Cursor& cursor = cursors_[run];
  if (cursor.used == cursor.room.size()) {
    const std::uint64_t left = cursor.end - cursor.at;
    if (left == 0) return false;
    cursor.room.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, room_events_)));
    cursor.used = 0;
    if (!read_all(store_->file_, cursor.room.data(), cursor.room.size() * kEventBytes,
                  cursor.at * kEventBytes)) {
      return file_error("read", store_->folder_);
    }
    cursor.at += cursor.room.size();
  }
  heads_.push({cursor.room[cursor.used].time_ns, run});
  return true;
}

Result<bool> ReplayStore::Reader::next(KinetoMapped& event) {
  if (failed_) return *failed_;
  if (cursors_.empty()) {
    if (in_memory_at_ == store_->keys_.size()) return false;
    event = store_->held(store_->keys_[in_memory_at_++].index);
    return true;
  }
  if (heads_.empty()) return false;
  const std::size_t run = heads_.top().run;
  heads_.pop();
  event = cursors_[run].room[cursors_[run].used++];
  if (auto filled = fill(run); !filled) {
    failed_ = filled.error();
    return *failed_;
  }
  return true;
}

}  // namespace ringmain::replay
