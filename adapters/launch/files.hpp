// Which files do a run's sinks write, where they are opened only once the program speaks? They are
// looked at when it starts: what is wrong with one is said then, what an earlier run left is gone,
// and a program that says nothing leaves an empty one.
#pragma once
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace ringmain::run {

/// A sink's file as it was when the process began.
struct FileAtStart {
  std::string sink;  // as the run names it: "json_lines:/out/rank-%r.jsonl"
  std::string path;  // as it was meant then
  std::string fault;
  bool known = false;  // a file was there, with this identity
  dev_t device = 0;
  ino_t inode = 0;

  /// "" or why it must not be opened now. A path that leads elsewhere, as below another root, would
  /// take events to where nobody looks for them.
  [[nodiscard]] std::string changed() const;
  /// How that file is named to the registry, whatever the environment says by now.
  [[nodiscard]] std::string spec() const;
};

/// Opens, empties and closes each. A pipe or a device is let alone: its reader would see its end.
[[nodiscard]] std::vector<FileAtStart> look_at_files(const std::vector<std::string>& sinks);

}  // namespace ringmain::run
