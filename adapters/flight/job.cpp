#include "adapters/flight/job.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <new>
#include <regex>
#include <sys/stat.h>
#include <system_error>
#include <time.h>
#include <tuple>
#include <unistd.h>
#include <unordered_set>

#include "adapters/flight/json_reader.hpp"
#include "adapters/flight/limits.hpp"
#include "adapters/flight/ring_snapshot.hpp"

namespace ringmain::flight {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

Error refused(std::string why) {
  return {Error::Code::refused, std::move(why)};
}
std::string system_sentence(int why) {
  return std::generic_category().message(why);
}

std::string base_name(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == file.npos ? file : file.substr(slash + 1);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// -1 if it is no number that fits.
std::int64_t number_of(std::string_view digits) {
  std::int64_t made = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), made);
  const bool whole = error == std::errc() && end == digits.data() + digits.size() && made >= 0;
  return whole ? made : -1;
}

std::int64_t last_number(const std::string& name) {
  std::size_t end = name.size();
  while (end > 0 && !is_digit(name[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  return number_of(std::string_view(name).substr(begin, end - begin));
}

bool may_be_a_dump(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return true;  // reading it says why
  char first[64];
  const ssize_t count = ::read(fd, first, sizeof first);
  ::close(fd);
  const std::string_view begin(first, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return count < 0 || begins_like_a_dump(begin) || begins_like_a_ring(begin);
}

/// The files of a folder; "" or what is wrong.
std::string list_folder(const std::string& folder, const std::string& prefix,
                        std::vector<std::string>& files) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(folder.c_str()), &::closedir);
  if (!opened) return folder + " cannot be read: " + system_sentence(errno);
  const std::size_t from = files.size();
  while (const dirent* entry = ::readdir(opened.get())) {
    const std::string name = entry->d_name;
    if (name.front() == '.' || !name.starts_with(prefix)) continue;
    const std::string path = folder + (folder.ends_with('/') ? "" : "/") + name;
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) files.push_back(path);
    if (files.size() > kFilesMax)
      return "there are more than " + std::to_string(kFilesMax) + " files";
  }
  std::sort(files.begin() + static_cast<long>(from), files.end());
  return "";
}

/// Each file once, though a folder and a path lead to it; by the path that was given, if one was,
/// as what is named by itself is read whatever it begins with. Of two names the rank may differ, so
/// files are the same only if their names are, too.
std::vector<std::string> each_once(const std::vector<std::string>& files,
                                   const std::vector<std::string>& given) {
  std::vector<std::string> once;
  std::map<std::tuple<dev_t, ino_t, std::string>, std::size_t> places;
  for (const std::string& file : files) {
    struct stat status {};
    if (file == "-" || ::stat(file.c_str(), &status) != 0) status = {};
    const auto [at, is_new] =
        places.try_emplace({status.st_dev, status.st_ino, base_name(file)}, once.size());
    if (is_new) {
      once.push_back(file);
    } else if (std::find(given.begin(), given.end(), file) != given.end()) {
      once[at->second] = file;
    }
  }
  return once;
}

/// Dumps are whole files; their writer says when it wrote them.
std::int64_t written_ns(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  return status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec;
}

std::int64_t time_of_day_ns() {
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

bool is_ring(const std::string& file) {
  if (file == "-") return false;  // it is read more than once
  char first[8];
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  const ssize_t count = ::read(fd, first, sizeof first);
  ::close(fd);
  return count > 0 && begins_like_a_ring({first, static_cast<std::size_t>(count)});
}

std::string as_dump(const RingSnapshot& ring) {
  return write_flight_dump(ring.operations,
                           {.format = DumpFormat::json, .backend = "", .rank = ring.rank});
}

/// A ring of a job, until it is known which belong together.
struct RingOfJob {
  Dump dump;
  RingSnapshot told;  // without its operations
};

class JobReader {
 public:
  explicit JobReader(const JobOptions& options)
      : options_(options), given_(options.paths.begin(), options.paths.end()) {}

  Result<Job> read(const std::vector<std::string>& files) {
    for (const std::string& file : files) {
      // A folder may hold more than dumps; what was named by itself is read, and refused.
      if (!given_.contains(file) && !may_be_a_dump(file)) {
        job_.passed_over.push_back(file);
      } else if (const auto added = add_if_it_fits(file); !added) {
        return added.error();
      }
    }
    add_rings();
    return std::move(job_);
  }

 private:
  /// A file that there is no memory for is told, and the others are judged without it.
  Result<bool> add_if_it_fits(const std::string& file) try {
    return add(file);
  } catch (const std::bad_alloc&) {
    return unread(file, -1, "there is not enough memory for what it holds");
  }
  /// An Error ends it all: a wrong call.
  Result<bool> add(const std::string& file) {
    const auto named = rank_of_name(file, options_.rank_from);
    if (!named) return named.error();
    RingOfJob ring;
    const bool is_a_ring = is_ring(file);
    const std::uint64_t bytes_max = given_.contains(file) ? engine::flight::kAllThatIsRecorded
                                                          : engine::flight::kRecordedInAFolder;
    auto bytes = is_a_ring ? ring_as_dump(file, bytes_max, ring.told) : read_file(file);
    if (!bytes) return unread(file, named.value(), bytes.error().message);
    const auto document = read_document(std::move(bytes).value());
    if (!document) return unread(file, named.value(), document.error().message);
    auto dump = read_dump(document.value(), job_.kept);
    if (!dump) return unread(file, named.value(), dump.error().message);
    dump.value().file = file;
    dump.value().file_time_ns = written_ns(file);
    // The name of a ring's file has its process's numbers.
    const bool by_name = !is_a_ring || !options_.rank_from.empty();
    if (dump.value().rank < 0 && by_name) dump.value().rank = named.value();
    if (is_a_ring && !given_.contains(file) && dump.value().entries.empty()) {
      job_.passed_over.push_back(file);  // a launcher's, or a data loader's
      return true;
    }
    if (dump.value().rank < 0) {
      return refused(file +
                     " does not say its rank, nor does its name; --rank-from REGEX finds it "
                     "in names such as yours");
    }
    if (!is_a_ring) {
      job_.dumps.push_back(std::move(dump).value());
    } else {
      ring.dump = std::move(dump).value();
      rings_.push_back(std::move(ring));
    }
    return true;
  }

  Result<bool> unread(const std::string& file, std::int64_t rank, const std::string& why) {
    job_.unread.push_back({file, rank, why});
    return false;
  }

  static Result<std::string> ring_as_dump(const std::string& file, std::uint64_t bytes_max,
                                          RingSnapshot& told) {
    auto read = snapshot_of_ring(file, bytes_max);
    if (!read) return read.error();
    told = std::move(read).value();
    std::string bytes = as_dump(told);
    told.operations = {};
    return bytes;
  }

  /// A folder keeps rings of earlier runs: what had ended when the newest began is passed over. A
  /// ring says what its process has done until now, or ever; so all are of one time: now, if one
  /// of the processes lives, else the last sign of life of any.
  void add_rings() {
    std::int64_t newest_began = 0;
    for (const RingOfJob& ring : rings_) newest_began = std::max(newest_began, ring.told.began_ns);
    const auto of_an_earlier_run = [&](const RingOfJob& ring) {
      return !given_.contains(ring.dump.file) && !ring.told.living &&
             ring.told.alive_ns < newest_began;
    };
    std::int64_t time_ns = 0;
    for (const RingOfJob& ring : rings_) {
      if (of_an_earlier_run(ring)) continue;
      time_ns = std::max(time_ns, ring.told.living ? time_of_day_ns() : ring.told.alive_ns);
    }
    for (RingOfJob& ring : rings_) {
      if (of_an_earlier_run(ring)) {
        job_.passed_over.push_back(ring.dump.file);
        continue;
      }
      ring.dump.file_time_ns = time_ns;
      job_.dumps.push_back(std::move(ring.dump));
    }
  }

  const JobOptions& options_;
  const std::unordered_set<std::string> given_;
  Job job_;
  std::vector<RingOfJob> rings_;
};

}  // namespace

Result<std::vector<std::string>> find_files(const JobOptions& options) {
  std::vector<std::string> files;
  for (const std::string& path : options.paths) {
    struct stat status {};
    if (path != "-" && ::stat(path.c_str(), &status) != 0) {
      return refused(path + " cannot be read: " + system_sentence(errno));
    }
    if (path == "-" || !S_ISDIR(status.st_mode)) {
      files.push_back(path);
    } else if (const std::string fault = list_folder(path, options.prefix, files); !fault.empty()) {
      return refused(fault);
    }
  }
  if (files.empty()) {
    return refused(
        "there is no file to read" +
        (options.prefix.empty() ? std::string() : " whose name begins with " + options.prefix));
  }
  return each_once(files, options.paths);
}

Result<std::int64_t> rank_of_name(const std::string& file, const std::string& rank_from) {
  const std::string name = base_name(file);
  if (rank_from.empty()) return last_number(name);
  try {
    std::smatch found;
    if (!std::regex_search(name, found, std::regex(rank_from))) return std::int64_t{-1};
    return number_of(found[found.size() > 1 ? 1 : 0].str());
  } catch (const std::regex_error&) {
    return refused("'" + rank_from + "' is no regular expression (of ECMAScript's kind)");
  }
}

Result<std::string> read_file(const std::string& file) {
  const bool standard = file == "-";
  const int fd = standard ? ::dup(STDIN_FILENO) : ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refused("it cannot be read: " + system_sentence(errno));
  std::string bytes;
  struct stat status {};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
      status.st_size <= static_cast<off_t>(kFileBytesMax)) {
    bytes.reserve(static_cast<std::size_t>(status.st_size));
  }
  char part[1 << 16];
  ssize_t count = 0;
  do {
    count = ::read(fd, part, sizeof part);
    if (count > 0) bytes.append(part, static_cast<std::size_t>(count));
  } while ((count > 0 || (count < 0 && errno == EINTR)) && bytes.size() <= kFileBytesMax);
  const int why = errno;
  ::close(fd);
  if (count < 0) return refused("it cannot be read: " + system_sentence(why));
  return bytes;
}

Result<std::string> read_dump_bytes(const std::string& file) {
  if (!is_ring(file)) return read_file(file);
  const auto ring = snapshot_of_ring(file);
  if (!ring) return ring.error();
  return as_dump(ring.value());
}

Result<Job> read_job(const JobOptions& options) {
  const auto files = find_files(options);
  if (!files) return files.error();
  auto read = JobReader(options).read(files.value());
  if (!read) return read.error();
  Job job = std::move(read).value();
  std::sort(job.dumps.begin(), job.dumps.end(),
            [](const Dump& one, const Dump& other) { return one.rank < other.rank; });
  for (std::size_t i = 1; i < job.dumps.size(); ++i) {
    const Dump& one = job.dumps[i - 1];
    const Dump& other = job.dumps[i];
    if (one.rank != other.rank) continue;
    return refused(one.file + " and " + other.file + " are both of rank " +
                   std::to_string(one.rank) + "; give the files of one dump of a job");
  }
  if (job.dumps.empty() && job.unread.empty()) return refused("none of the files is a dump");
  if (job.dumps.empty()) {
    return refused(job.unread.front().file + " is no dump: " + job.unread.front().why);
  }
  job.world_size = options.world_size;
  return job;
}

}  // namespace ringmain::flight
