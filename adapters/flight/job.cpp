#include "adapters/flight/job.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <regex>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <unordered_set>

#include "adapters/flight/json_reader.hpp"
#include "adapters/flight/limits.hpp"

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
  return count < 0 || begins_like_a_dump(std::string_view(first, static_cast<std::size_t>(count)));
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

/// Dumps are whole files; their writer says when it wrote them.
std::int64_t written_ns(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  return status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec;
}

/// Reads one file into the job. An Error ends it all: a wrong call.
Result<bool> add_file(const JobOptions& options, const std::string& file, Job& job) {
  const auto named = rank_of_name(file, options.rank_from);
  if (!named) return named.error();
  const auto unread = [&](const std::string& why) -> Result<bool> {
    job.unread.push_back({file, named.value(), why});
    return false;
  };
  auto bytes = read_file(file);
  if (!bytes) return unread(bytes.error().message);
  const auto document = read_document(std::move(bytes).value());
  if (!document) return unread(document.error().message);
  auto dump = read_dump(document.value(), job.kept);
  if (!dump) return unread(dump.error().message);
  dump.value().file = file;
  dump.value().file_time_ns = written_ns(file);
  if (dump.value().rank < 0) dump.value().rank = named.value();
  if (dump.value().rank < 0) {
    return refused(file +
                   " does not say its rank, nor does its name; --rank-from REGEX finds it "
                   "in names such as yours");
  }
  job.dumps.push_back(std::move(dump).value());
  return true;
}

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
  return files;
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

Result<Job> read_job(const JobOptions& options) {
  const auto files = find_files(options);
  if (!files) return files.error();
  Job job;
  const std::unordered_set<std::string> given(options.paths.begin(), options.paths.end());
  for (const std::string& file : files.value()) {
    // A folder may hold more than dumps; what was named by itself is read, and refused.
    if (!given.contains(file) && !may_be_a_dump(file)) {
      job.passed_over.push_back(file);
      continue;
    }
    if (const auto added = add_file(options, file, job); !added) return added.error();
  }
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
