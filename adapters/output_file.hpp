// How does a sink write its file? Unbuffered, so that what one call writes is one write: whole
// lines stay whole, and a forked child has nothing of its parent's to write again.
#pragma once
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <unistd.h>

#include "ringmain/bus/result.hpp"

#include "ringmain/adapters/output_open.hpp"

namespace ringmain::registry {

/// An Error: one sentence.
inline Result<std::FILE*> open_output(const std::string& path) {
  const auto opened = open_shared_output(path);
  if (!opened) return opened.error();
  const std::string cannot = "cannot open " + path + " for writing: ";
  if (!opened.value().has_reader) {
    return Error{Error::Code::system,
                 cannot + "it is a pipe that nobody reads; start its reader first"};
  }
  std::FILE* const file = ::fdopen(opened.value().fd, "a");
  if (file == nullptr) {
    const int why = errno;
    ::close(opened.value().fd);
    return Error{Error::Code::system, cannot + std::generic_category().message(why)};
  }
  (void)std::setvbuf(file, nullptr, _IONBF, 0);
  return file;
}

}  // namespace ringmain::registry
