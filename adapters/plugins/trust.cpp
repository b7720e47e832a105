#include "adapters/plugins/trust.hpp"

#include <filesystem>
#include <fstream>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "adapters/library_folder.hpp"

namespace ringmain::registry {
namespace {

namespace fs = std::filesystem;

/// Where a user namespace has no number for an owner, the owner has no rights in it either.
bool is_nobody_here(uid_t owner) {
  std::ifstream map("/proc/self/uid_map");
  std::uint64_t first = 1, outside = 1, count = 0;
  map >> first >> outside >> count;
  if (first == 0 && outside == 0 && count == 0xffffffffu) return false;  // no namespace of its own
  uid_t overflow = 65534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> overflow;
  return owner == overflow;
}

bool is_trusted(uid_t owner) {
  struct stat library {};
  if (owner == 0) return true;
  if (::stat(library_folder().c_str(), &library) == 0 && owner == library.st_uid) return true;
  return is_nobody_here(owner);
}

/// Which users could change it; "" if none. In a folder with the sticky bit a user cannot remove
/// what another owns.
std::string who_changes(const struct stat& status) {
  if (!is_trusted(status.st_uid)) return "belongs to user " + std::to_string(status.st_uid);
  if (S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0) return "";
  if ((status.st_mode & S_IWOTH) != 0) return "can be written by everybody";
  if ((status.st_mode & S_IWGRP) != 0) {
    return "can be written by group " + std::to_string(status.st_gid);
  }
  return "";
}

}  // namespace

std::string trust_fault(const std::string& path) {
  if (::geteuid() != 0) return "";
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return "";  // opening it will say why it is not there
  for (fs::path part = real;; part = part.parent_path()) {
    struct stat status {};
    if (::lstat(part.c_str(), &status) != 0) return part.string() + " cannot be looked at";
    if (const std::string who = who_changes(status); !who.empty()) {
      return "root loads nothing that others can change, and " + part.string() + " " + who +
             "; chown or chmod it, or run this as that user";
    }
    if (part == part.root_path()) return "";
  }
}

}  // namespace ringmain::registry
