#include "cli/program_file.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <vector>

namespace ringmain::cli {
namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Section = ElfW(Shdr);
using Symbol = ElfW(Sym);

constexpr std::uint64_t kTableBytesMax = 64
                                         << 20;  // of symbols or their names: more is not looked at

/// Reads only within the file, and says when a part would lie outside it.
class File {
 public:
  explicit File(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status {};
    if (fd_ >= 0 && ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode)) {
      size_ = static_cast<std::uint64_t>(status.st_size);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }

  template <class T>
  bool read(T& to, std::uint64_t at) const {
    return at <= size_ && sizeof to <= size_ - at &&
           ::pread(fd_, &to, sizeof to, static_cast<off_t>(at)) == static_cast<ssize_t>(sizeof to);
  }
  /// "" if a part of it is missing, or if it is too long.
  [[nodiscard]] std::string bytes(std::uint64_t at, std::uint64_t count, std::uint64_t max) const {
    if (at > size_ || count > size_ - at || count > max) return "";
    std::string made(count, '\0');
    const ssize_t n = ::pread(fd_, made.data(), count, static_cast<off_t>(at));
    return n == static_cast<ssize_t>(count) ? made : "";
  }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  int fd_;
  std::uint64_t size_ = 0;
};

/// The text that begins there and ends with a zero; "" if there is no zero.
std::string_view text_at(const std::string& table, std::uint64_t at) {
  if (at >= table.size()) return {};
  const std::size_t end = table.find('\0', at);
  return end == table.npos ? std::string_view() : std::string_view(table).substr(at, end - at);
}

/// Sanitizers that take what their runtime has not seen for a fault of the program.
std::string_view runtime_of(std::string_view name) {
  if (name == "__tsan_init" || name.starts_with("libtsan.") ||
      name.starts_with("libclang_rt.tsan")) {
    return "ThreadSanitizer";
  }
  if (name == "__msan_init" || name.starts_with("libclang_rt.msan")) return "MemorySanitizer";
  return {};
}

class Elf {
 public:
  explicit Elf(const File& file) : file_(file) {
    known_ = file.read(header_, 0) && std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0;
  }
  /// False: no ELF file. Of a file for another processor only this may be asked.
  [[nodiscard]] bool known() const noexcept { return known_; }
  [[nodiscard]] bool ours() const {
    Header own;
    const File self("/proc/self/exe");
    return !self.read(own, 0) ||
           (own.e_ident[EI_CLASS] == header_.e_ident[EI_CLASS] &&
            own.e_ident[EI_DATA] == header_.e_ident[EI_DATA] && own.e_machine == header_.e_machine);
  }
  /// False: the file is damaged, and nothing is known of it.
  bool find_loader(bool& there, std::string& name) const {
    there = false;
    if (header_.e_phentsize != sizeof(Segment)) return false;
    for (std::uint64_t i = 0; i < header_.e_phnum; ++i) {
      Segment segment;
      if (!file_.read(segment, header_.e_phoff + i * sizeof segment)) return false;
      if (segment.p_type != PT_INTERP) continue;
      there = true;
      name = file_.bytes(segment.p_offset, segment.p_filesz, 4096);
      name.resize(std::min(name.find('\0'), name.size()));
    }
    return true;
  }
  /// The sanitizer that it was built with, if that is one which does not work with a preload.
  [[nodiscard]] std::string_view sanitizer() const {
    if (header_.e_shentsize != sizeof(Section)) return {};
    for (std::uint64_t i = 0; i < header_.e_shnum; ++i) {
      Section section;
      if (!section_at(i, section)) return {};
      std::string_view found;
      if (section.sh_type == SHT_DYNAMIC) found = in_table<ElfW(Dyn)>(section);
      if (section.sh_type == SHT_DYNSYM) found = in_table<Symbol>(section);
      if (!found.empty()) return found;
    }
    return {};
  }

 private:
  bool section_at(std::uint64_t number, Section& section) const {
    return number < header_.e_shnum &&
           file_.read(section, header_.e_shoff + number * sizeof section);
  }
  static std::uint64_t name_of(const ElfW(Dyn) & entry) {
    return entry.d_tag == DT_NEEDED ? entry.d_un.d_val : 0;
  }
  static std::uint64_t name_of(const Symbol& symbol) { return symbol.st_name; }

  template <class Entry>
  [[nodiscard]] std::string_view in_table(const Section& section) const {
    Section names;
    if (!section_at(section.sh_link, names)) return {};
    const std::string entries = file_.bytes(section.sh_offset, section.sh_size, kTableBytesMax);
    const std::string texts = file_.bytes(names.sh_offset, names.sh_size, kTableBytesMax);
    for (std::size_t at = 0; entries.size() - at >= sizeof(Entry); at += sizeof(Entry)) {
      Entry entry;
      std::memcpy(&entry, entries.data() + at, sizeof entry);
      const std::string_view found = runtime_of(text_at(texts, name_of(entry)));
      if (!found.empty()) return found;
    }
    return {};
  }

  const File& file_;
  Header header_{};
  bool known_ = false;
};

/// The loader takes no preload where a program gets rights that its caller lacks (AT_SECURE).
std::string rights_of(const std::string& path) {
  struct stat status {};
  struct statvfs system {};
  if (::stat(path.c_str(), &status) != 0 || ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
      (::statvfs(path.c_str(), &system) == 0 && (system.f_flag & ST_NOSUID) != 0)) {
    return "";
  }
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid()) {
    return "it runs with another user's rights (setuid)";
  }
  const bool group = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0;
  if (group && status.st_gid != ::getgid()) {
    return "it runs with another group's rights (setgid)";
  }
  if (::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return "it runs with rights of its own (file capabilities, setcap)";
  }
  return "";
}

/// The interpreter that the first line of a script names; "" if the file is no script.
std::string run_by(const File& file) {
  std::string line = file.bytes(0, std::min<std::uint64_t>(file.size(), 256), 256);
  if (!line.starts_with("#!")) return "";
  line.resize(std::min(line.find('\n'), line.size()));
  const std::size_t begin = line.find_first_not_of(" \t", 2);
  if (begin == line.npos) return "";
  return line.substr(begin, line.find_first_of(" \t", begin) - begin);
}

PreloadHindrance hindrance_of(const Elf& program) {
  if (!program.known()) return {};
  if (!program.ours()) return {"it was built for another kind of processor than ringmain", true};
  bool loaded = false;
  std::string loader;
  if (!program.find_loader(loaded, loader)) return {};
  if (!loaded) return {"it is linked statically"};
  if (loader.find("ld-musl") != loader.npos) {
    return {"it uses the C library musl, and ringmain was built with glibc", true};
  }
  if (const std::string_view sanitizer = program.sanitizer(); !sanitizer.empty()) {
    return {"it was built with " + std::string(sanitizer) +
                ", which would take what ringmain does for faults of the program; use a build "
                "without it",
            true};
  }
  return {};
}

}  // namespace

PreloadHindrance preload_hindrance(const std::string& path) {
  std::string program = path;
  for (int scripts = 0; scripts < 4; ++scripts) {  // as many as Linux follows
    const File file(program);
    const std::string by = run_by(file);
    if (by.empty()) {
      const std::string rights = rights_of(program);
      return rights.empty() ? hindrance_of(Elf(file)) : PreloadHindrance{rights};
    }
    program = by;
  }
  return {};
}

}  // namespace ringmain::cli
