#include "adapters/launch/files.hpp"

#include <unistd.h>
#include <utility>

#include "bus/rank.hpp"

#include "adapters/formats/output_open.hpp"
#include "adapters/registry.hpp"

namespace ringmain::run {

std::string FileAtStart::changed() const {
  struct stat now {};
  const bool same =
      !known || (::stat(path.c_str(), &now) == 0 && now.st_dev == device && now.st_ino == inode);
  return same ? ""
              : "cannot open " + path +
                    " for writing: it is no longer the file that it was at the program's start";
}

std::string FileAtStart::spec() const {
  std::string made(registry::Spec::of(sink).name);
  made += ":";
  for (const char c : path) made += c == '%' ? "%%" : std::string(1, c);
  return made;
}

std::vector<FileAtStart> look_at_files(const std::vector<std::string>& sinks) {
  std::vector<FileAtStart> all;
  const RankIdentity me = read_rank_identity();
  for (const std::string& sink : sinks) {
    FileAtStart file;
    file.sink = sink;
    file.path = expand_path(registry::Spec::of(sink).argument.value_or(""), me);
    struct stat there {};
    const bool stream = ::lstat(file.path.c_str(), &there) == 0 &&
                        (S_ISFIFO(there.st_mode) || S_ISCHR(there.st_mode));
    if (!stream) {
      auto opened = formats::open_shared_output(file.path);
      if (!opened) {
        file.fault = opened.error().message;
      } else if (opened.value().fd >= 0) {
        file.known = ::fstat(opened.value().fd, &there) == 0 && S_ISREG(there.st_mode);
        file.device = there.st_dev;
        file.inode = there.st_ino;
        ::close(opened.value().fd);
      }
    }
    all.push_back(std::move(file));
  }
  return all;
}

}  // namespace ringmain::run
