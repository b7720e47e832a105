// Which files do a run's sinks write, if they are opened only when the program first publishes?
// They are checked when the program starts: what is wrong with a file is said then, what an earlier
// run left is removed, and a program that publishes nothing leaves an empty file.
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

  /// "", or why it must not be opened now. A path that leads elsewhere by now, as below another
  /// root, would take events to a file where nobody looks for them.
  [[nodiscard]] std::string changed() const;
  /// How the registry is asked for that file, whatever the environment says by now.
  [[nodiscard]] std::string spec() const;
};

/// Opens, empties and closes each. A pipe or a device is left alone, because its reader would see
/// an end.
[[nodiscard]] std::vector<FileAtStart> look_at_files(const std::vector<std::string>& sinks);

}  // namespace ringmain::run
