#include "cli/door_client.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <simdjson.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <system_error>
#include <tuple>
#include <unistd.h>

#include "engine/door/door_place.hpp"
#include "engine/door/door_server.hpp"
#include "engine/system/clock.hpp"
#include "engine/system/descriptor.hpp"

namespace ringmain::cli {
namespace {

namespace fs = std::filesystem;
using engine::Descriptor;
using engine::door::DoorName;

/// No door says as much.
std::size_t bytes_max(std::string_view word) {
  return word == "who" || word == "help" ? 1u << 20 : 64u << 20;
}

std::string in_words(int error) {
  return std::generic_category().message(error);
}

/// False: time is up.
bool wait_for(int fd, short events, const engine::Deadline& deadline) {
  for (;;) {
    pollfd polled{fd, events, 0};
    const std::int64_t left = deadline.left_ns();
    const int came = ::poll(&polled, 1, static_cast<int>((left + 999'999) / 1'000'000));
    if (came > 0) return true;
    if (came == 0 && deadline.passed()) return false;
    if (came < 0 && errno != EINTR) return false;
  }
}

/// A door with all its places taken has others wait.
int connect_within(int folder, const DoorAt& door, const engine::Deadline& deadline) {
  for (;;) {
    const int fd = engine::door::connect_to(folder, door.folder, door.name);
    if (fd != -EAGAIN || deadline.passed()) return fd;
    (void)::poll(nullptr, 0, 20);
  }
}

std::string why_no_connection(const DoorAt& door, int error) {
  switch (error) {
    case ECONNREFUSED:
      return "nobody answers at " + door.path() + ": its process has ended";
    case ENOENT:
      return "there is no door " + door.path() + "; 'ringmain door' lists those that are there";
    case EACCES:
    case EPERM:
      return door.path() + " is another user's door, which lets in that user and root only";
    case EAGAIN:
      return door.path() + " has too many who wait; ask again";
    default:
      return "no connection to " + door.path() + ": " + in_words(error);
  }
}

/// Until the end, the limit, or more than any door says. Returns a sentence, or "".
std::string read_all(int fd, std::size_t bytes_max, std::string& text,
                     const engine::Deadline& deadline) {
  char some[1 << 16];
  for (;;) {
    if (!wait_for(fd, POLLIN, deadline)) return "does not answer within the time (--timeout)";
    const ssize_t bytes = ::recv(fd, some, sizeof some, MSG_DONTWAIT);
    if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (bytes < 0) return "breaks off: " + in_words(errno);
    if (bytes == 0) return "";
    text.append(some, static_cast<std::size_t>(bytes));
    if (text.size() > bytes_max) return "says more than any door does";
  }
}

/// Whoever listens at the socket may say anything.
bool is_object(const std::string& text) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  return parser.parse(text).get(object) == simdjson::SUCCESS;
}

}  // namespace

bool is_answered_in_json(std::string_view word) {
  return word == "stats" || word == "dump" || word == "stalled" || word == "who";
}

std::vector<std::string> door_places(const std::string& asked) {
  const char* const said = std::getenv("RINGMAIN_DOOR");
  const bool is_folder = said != nullptr && *said == '/';
  return engine::door::door_folders(!asked.empty() ? asked : is_folder ? said : "");
}

DoorsFound find_doors(const std::string& folder) {
  DoorsFound found;
  for (const std::string& place : door_places(folder)) {
    std::error_code why;
    const Descriptor in(::open(place.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (fs::directory_iterator entry(place, why), end; !why && entry != end;
         entry.increment(why)) {
      const std::string name = entry->path().filename().string();
      DoorName numbers;
      if (!engine::door::parse_door_name(name, numbers)) continue;
      if (engine::door::is_left(in.get(), place, name)) continue;
      found.doors.push_back({place, name, numbers.pid});
    }
    if (why && why != std::errc::no_such_file_or_directory)
      found.unread.push_back(place + " cannot be read: " + why.message());
  }
  std::sort(found.doors.begin(), found.doors.end(), [](const DoorAt& a, const DoorAt& b) {
    return std::tie(a.pid, a.name) < std::tie(b.pid, b.name);
  });
  return found;
}

DoorAnswer ask_door(const DoorAt& door, std::string_view word, std::int64_t limit_ns) {
  DoorAnswer answer;
  const engine::Deadline deadline(limit_ns);
  const Descriptor in(::open(door.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (in.get() < 0) return answer.fault = why_no_connection(door, errno), answer;
  const Descriptor fd(connect_within(in.get(), door, deadline));
  if (fd.get() < 0) return answer.fault = why_no_connection(door, -fd.get()), answer;
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0) {
    answer.pid = peer.pid;
    if (!engine::door::is_let_in(peer.uid, ::geteuid()) && ::geteuid() != 0)
      return answer.fault = door.path() + " is answered by another user's process", answer;
  }
  const std::string line = std::string(word) + "\n";
  if (::send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return answer.fault = "the door " + door.path() + " takes no word: " + in_words(errno), answer;
  std::string fault = read_all(fd.get(), bytes_max(word), answer.text, deadline);
  std::string& text = answer.text;
  if (fault.empty() && text.empty()) fault = "lets nobody of this user in";
  if (fault.empty() && !text.ends_with("\n\n")) fault = "was cut off in the middle of its answer";
  if (!fault.empty()) return answer.fault = "the door " + door.path() + " " + fault, answer;
  text.pop_back();
  constexpr std::string_view kSentence = "ringmain: ";
  if (text.starts_with(kSentence)) {
    answer.fault = text.substr(kSentence.size(), text.size() - kSentence.size() - 1);
    answer.is_told = true;
  } else if (is_answered_in_json(word) && !is_object(text)) {
    answer.fault = "what " + door.path() + " answers is no JSON, so no door of ringmain's";
  }
  return answer;
}

}  // namespace ringmain::cli
