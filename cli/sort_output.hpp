// How is a file written whole or not at all? The lines go to a nameless file in the same folder,
// which takes the name when it is done. That folder is made if it is missing, for its owner only;
// those above it are not. Pipes, devices and descriptors are written directly.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/sort_input.hpp"

namespace ringmain::cli {

class SortOutput {
 public:
  /// `path`: "-" is standard output. Refuses what is among `inputs`, a link, another's file.
  /// Throws CannotSort.
  SortOutput(const std::string& path, const std::vector<Input>& inputs);
  SortOutput(const SortOutput&) = delete;
  SortOutput& operator=(const SortOutput&) = delete;
  /// Without finish() before it, the output stays as it was.
  ~SortOutput();

  /// Throws CannotSort.
  void write(std::string_view bytes) {
    if (held_.size() + bytes.size() > kHeldBytes) empty();
    held_.append(bytes);
  }
  void finish();

  [[nodiscard]] bool is_standard_output() const noexcept { return standard_; }

 private:
  static constexpr std::size_t kHeldBytes = 1 << 20;

  void open_beside(const std::string& path, mode_t mode);
  void empty();
  [[noreturn]] void unwritten(int why) const;

  std::string name_;
  std::string path_;       // the name that it takes in the end; "": written directly
  std::string temporary_;  // its name until then, where nameless files are not possible
  bool standard_ = false;
  int fd_ = -1;
  std::string held_;
};

}  // namespace ringmain::cli
