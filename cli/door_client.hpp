// Which doors are there, and what do they say?
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace ringmain::cli {

/// The socket of a process that listens, or listened.
struct DoorAt {
  std::string folder, name;
  std::uint32_t pid = 0;  // that its name says; 0: it has another name
  [[nodiscard]] std::string path() const { return folder + "/" + name; }
};

/// Folders where doors of this user are: the one that is asked for, that RINGMAIN_DOOR names, or
/// the usual ones.
[[nodiscard]] std::vector<std::string> door_places(const std::string& asked);

struct DoorsFound {
  std::vector<DoorAt> doors;        // that somebody listens at, by process
  std::vector<std::string> unread;  // a sentence for each folder that cannot be read
};
[[nodiscard]] DoorsFound find_doors(const std::string& folder);

/// Is that word answered by a JSON object?
[[nodiscard]] bool is_answered_in_json(std::string_view word);

/// What a door answered; or a sentence: its own, or why there is no answer.
struct DoorAnswer {
  std::string text;      // without the empty line at its end
  std::string fault;     // "": there is an answer
  bool is_told = false;  // the fault is the door's own sentence
  pid_t pid = 0;         // who answers, as this process numbers it; 0: not known
};
[[nodiscard]] DoorAnswer ask_door(const DoorAt& door, std::string_view word, std::int64_t limit_ns);

}  // namespace ringmain::cli
