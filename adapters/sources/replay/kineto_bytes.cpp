#include "adapters/sources/replay/kineto_bytes.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#include <zlib.h>

namespace ringmain::replay {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{256} << 10;

/// Closes what it holds.
class File {
 public:
  File() = default;
  explicit File(int fd) noexcept : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

std::string why(int error) {
  return std::strerror(error);
}

/// A file that nobody else can see and that is gone with this process.
File make_spool(std::string& where) {
  const char* wanted = std::getenv("TMPDIR");
  for (const char* folder : {wanted, "/var/tmp", "/tmp"}) {
    if (folder == nullptr || *folder == '\0') continue;
    where = folder;
    const int fd = ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return File(fd);
    std::string name = where + "/ringmain-XXXXXX";  // a file system without O_TMPFILE
    const int named = ::mkostemp(name.data(), O_CLOEXEC);
    if (named >= 0) {
      ::unlink(name.c_str());
      return File(named);
    }
  }
  return {};
}

}  // namespace

struct KinetoBytes::Core {
  std::string path;
  File input;
  File spool;
  std::string spool_folder;
  std::uint64_t spool_bytes_max = 0;
  std::uint64_t spooled = 0;
  std::int64_t start = 0;      // where in a seekable input the trace begins
  std::uint64_t size = 0;      // of a regular file
  std::uint64_t position = 0;  // raw bytes taken since the start
  bool seekable = false;
  bool from_spool = false;

  std::vector<unsigned char> raw = std::vector<unsigned char>(kChunkBytes);
  std::size_t raw_at = 0;
  std::size_t raw_end = 0;
  bool raw_over = false;

  enum class Form : std::uint8_t { unknown, plain, gzip } form = Form::unknown;
  z_stream zip{};
  bool zip_ready = false;
  bool between_members = false;
  std::optional<Error> failed;

  Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core() {
    if (zip_ready) inflateEnd(&zip);
  }

  Error fail(Error::Code code, std::string message) {
    failed = Error{code, std::move(message)};
    return *failed;
  }

  /// Reads from the file, the spool or the pipe. At the end: 0.
  Result<std::size_t> take(unsigned char* to, std::size_t bytes) {
    for (;;) {
      const ssize_t got = from_spool ? ::pread(spool.fd(), to, bytes, static_cast<off_t>(position))
                          : seekable
                              ? ::pread(input.fd(), to, bytes,
                                        static_cast<off_t>(start) + static_cast<off_t>(position))
                              : ::read(input.fd(), to, bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail(Error::Code::system, path + " cannot be read: " + why(errno) + ".");
      const auto taken = static_cast<std::size_t>(got);
      position += taken;
      if (taken > 0 && !from_spool && spool.fd() >= 0) {
        if (auto kept = keep(to, taken); !kept) return kept.error();
      }
      return taken;
    }
  }

  /// Copies what a pipe gave, for the second reading.
  Result<std::size_t> keep(const unsigned char* from, std::size_t bytes) {
    if (spooled + bytes > spool_bytes_max) {
      return fail(Error::Code::refused,
                  path + " is longer than the " + std::to_string(spool_bytes_max) +
                      " bytes that may be kept of a pipe; save it to a file and replay that.");
    }
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t put =
          ::pwrite(spool.fd(), from + done, bytes - done, static_cast<off_t>(spooled + done));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) {
        return fail(Error::Code::system, "a copy of " + path + " cannot be written to " +
                                             spool_folder + ": " + why(put < 0 ? errno : ENOSPC) +
                                             "; set TMPDIR to a folder with more room, or save the "
                                             "trace to a file and replay that.");
      }
      done += static_cast<std::size_t>(put);
    }
    spooled += bytes;
    return bytes;
  }

  /// Makes raw[raw_at, raw_end) non-empty, or sets raw_over.
  Result<bool> fill() {
    if (raw_at < raw_end || raw_over) return raw_at < raw_end;
    auto got = take(raw.data(), raw.size());
    if (!got) return got.error();
    raw_at = 0;
    raw_end = got.value();
    raw_over = raw_end == 0;
    return !raw_over;
  }

  /// Reads the first bytes, at least two unless there are fewer, and looks at them.
  Result<bool> recognise() {
    raw_at = raw_end = 0;
    while (raw_end < 2) {
      auto got = take(raw.data() + raw_end, raw.size() - raw_end);
      if (!got) return got.error();
      if (got.value() == 0) break;
      raw_end += got.value();
    }
    raw_over = raw_end == 0;
    form = raw_end >= 2 && raw[0] == 0x1f && raw[1] == 0x8b ? Form::gzip : Form::plain;
    if (form == Form::plain) return true;
    const int code = zip_ready ? inflateReset(&zip) : inflateInit2(&zip, 15 + 16);
    if (code != Z_OK)
      return fail(Error::Code::no_memory, "zlib found no memory to unzip " + path + ".");
    zip_ready = true;
    between_members = false;
    return true;
  }

  Result<std::size_t> unzip(std::span<char> to) {
    zip.next_out = reinterpret_cast<Bytef*>(to.data());
    zip.avail_out = static_cast<uInt>(std::min<std::size_t>(to.size(), 1u << 30));
    const uInt wanted = zip.avail_out;
    while (zip.avail_out == wanted) {
      auto more = fill();
      if (!more) return more.error();
      if (!more.value()) {
        if (between_members) return std::size_t{0};
        return fail(Error::Code::refused, path + " ends in the middle of its gzip data, after " +
                                              std::to_string(position) +
                                              " bytes: it was cut short; copy or record it again.");
      }
      if (between_members) {
        auto next = next_member();
        if (!next) return next.error();
        if (!next.value()) return std::size_t{0};
      }
      zip.next_in = raw.data() + raw_at;
      zip.avail_in = static_cast<uInt>(raw_end - raw_at);
      const int code = inflate(&zip, Z_NO_FLUSH);
      raw_at = raw_end - zip.avail_in;
      if (code == Z_STREAM_END) {
        between_members = true;
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        const std::string said = zip.msg != nullptr ? std::string(" (") + zip.msg + ")" : "";
        if (zip.avail_out != wanted) break;  // first what is whole; the next read meets it again
        return fail(Error::Code::refused, path + " holds damaged gzip data near byte " +
                                              std::to_string(position - (raw_end - raw_at)) + said +
                                              "; copy or record it again.");
      }
    }
    return static_cast<std::size_t>(wanted - zip.avail_out);
  }

  /// After a member: begins the next one, true; false where only zeros (padding) follow.
  Result<bool> next_member() {
    bool zeros = false;
    for (;;) {
      auto more = fill();
      if (!more) return more.error();
      if (!more.value()) return false;
      if (raw[raw_at] != 0) break;
      zeros = true;
      ++raw_at;
    }
    if (zeros || raw[raw_at] != 0x1f) {
      return fail(Error::Code::refused,
                  path + " goes on after the end of its gzip data, at byte " +
                      std::to_string(position - (raw_end - raw_at)) +
                      ", with something else: it is damaged; copy or record it again.");
    }
    inflateReset(&zip);
    between_members = false;
    return true;
  }
};

KinetoBytes::KinetoBytes(std::unique_ptr<Core> core) noexcept : core_(std::move(core)) {}
KinetoBytes::KinetoBytes(KinetoBytes&&) noexcept = default;
KinetoBytes& KinetoBytes::operator=(KinetoBytes&&) noexcept = default;
KinetoBytes::~KinetoBytes() = default;

Result<KinetoBytes> KinetoBytes::open(const std::string& path, const KinetoOptions& options,
                                      bool again) {
  auto core = std::make_unique<Core>();
  core->path = path == "-" ? "standard input" : path;
  core->spool_bytes_max = options.spool_bytes_max;
  if (path == "-") {
    core->input = File(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  } else {
    core->input = File(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (core->input.fd() < 0) {
      const auto code = errno == ENOENT ? Error::Code::not_found : Error::Code::system;
      return Error{code, path + " cannot be opened: " + why(errno) + "."};
    }
  }
  return over(std::move(core), again);
}

Result<KinetoBytes> KinetoBytes::of_descriptor(int fd, const std::string& name) {
  auto core = std::make_unique<Core>();
  core->path = name;
  core->input = File(fd);
  return over(std::move(core), false);
}

Result<KinetoBytes> KinetoBytes::over(std::unique_ptr<Core> core, bool again) {
  struct stat status {};
  if (::fstat(core->input.fd(), &status) != 0) {
    return Error{Error::Code::system, core->path + " cannot be read: " + why(errno) + "."};
  }
  if (S_ISDIR(status.st_mode)) {
    return Error{Error::Code::refused, core->path + " is a folder; name one of the traces in it."};
  }
  const off_t here = S_ISREG(status.st_mode) ? ::lseek(core->input.fd(), 0, SEEK_CUR) : off_t{-1};
  core->seekable = here >= 0;
  if (core->seekable) {
    core->start = here;
    core->size = static_cast<std::uint64_t>(std::max<off_t>(status.st_size - here, 0));
  } else if (again) {
    core->spool = make_spool(core->spool_folder);
    if (core->spool.fd() < 0) {
      return Error{Error::Code::system, "no temporary file can be made for a copy of " +
                                            core->path +
                                            "; set TMPDIR to a folder that can be written."};
    }
  }
  return KinetoBytes(std::move(core));
}

Result<std::size_t> KinetoBytes::read(std::span<char> to) {
  Core& core = *core_;
  if (core.failed) return *core.failed;
  if (to.empty()) return std::size_t{0};
  if (core.form == Core::Form::unknown) {
    if (auto known = core.recognise(); !known) return known.error();
  }
  if (core.form == Core::Form::gzip) return core.unzip(to);
  auto more = core.fill();
  if (!more) return more.error();
  const std::size_t bytes = std::min(to.size(), core.raw_end - core.raw_at);
  std::memcpy(to.data(), core.raw.data() + core.raw_at, bytes);
  core.raw_at += bytes;
  return bytes;
}

void KinetoBytes::rewind() {
  Core& core = *core_;
  core.failed.reset();
  core.from_spool = core.spool.fd() >= 0;
  core.form = Core::Form::unknown;
  core.position = 0;
  core.raw_at = core.raw_end = 0;
  core.raw_over = false;
}

const std::string& KinetoBytes::path() const noexcept {
  return core_->path;
}
std::uint64_t KinetoBytes::position() const noexcept {
  return core_->position;
}
std::uint64_t KinetoBytes::size() const noexcept {
  return core_->size;
}
bool KinetoBytes::compressed() const noexcept {
  return core_->form == Core::Form::gzip;
}

}  // namespace ringmain::replay
