// Where do the tests' plugins live? Copies in folders of their own, manifest and all.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ringmain::tests {

namespace fs = std::filesystem;

inline std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}
/// The manifest of a built plugin.
inline fs::path manifest_of(fs::path library) {
  return library.replace_extension(".ringmain-plugin");
}
inline fs::path faulty(const std::string& fault) {
  return fs::path(FAULTY_FOLDER) / ("faulty_" + fault + ".so");
}
/// Without the line that holds the library's sum: then only a trial finds damage.
inline std::string without_sum(const std::string& manifest) {
  std::istringstream lines(manifest);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("sha256", 0) != 0) kept += line + "\n";
  }
  return kept;
}

/// A folder that is gone at its end.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "ringmain-plugins-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }
  [[nodiscard]] const fs::path& path() const { return path_; }
  /// Copies a built plugin and its manifest here; returns the library's path.
  fs::path take(const fs::path& library) const {
    const fs::path to = path_ / library.filename();
    fs::copy_file(library, to, fs::copy_options::overwrite_existing);
    fs::copy_file(manifest_of(library), manifest_of(to), fs::copy_options::overwrite_existing);
    return to;
  }

 private:
  fs::path path_;
};

}  // namespace ringmain::tests
