#include "tests/stress/totals.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace ringmain::stress {
namespace {

constexpr const char* kFirstLine = "ringmain_soak ";
constexpr const char* kVersion = RINGMAIN_VERSION;

/// FNV-1a: finds what a disk or an editor did to it, no more.
std::uint64_t sum_of(const std::string& text) {
  std::uint64_t sum = 0xcbf29ce484222325ull;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return sum;
}

std::string text_of(const Totals& totals) {
  std::string text = std::string(kFirstLine) + kVersion + "\n";
  for (const auto& [name, member] : Totals::names())
    text += std::string(name) + " " + std::to_string(totals.*member) + "\n";
  return text + "sum " + std::to_string(sum_of(text)) + "\n";
}

/// Closes and, unless all went well, removes what it has written.
class Draft {
 public:
  explicit Draft(std::string file)
      : file_(std::move(file)),
        open_(::open(file_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (open_ >= 0) ::close(open_);
    if (!kept_ && open_ >= 0) ::unlink(file_.c_str());
  }
  bool become(const std::string& file, const std::string& text) {
    kept_ = open_ >= 0 &&
            ::write(open_, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
            ::fsync(open_) == 0 && std::rename(file_.c_str(), file.c_str()) == 0;
    return kept_;
  }

 private:
  const std::string file_;
  const int open_;
  bool kept_ = false;
};

}  // namespace

void Totals::add(const Tally& tally) {
  events += tally.events;
  heard += tally.heard;
  dropped += tally.dropped;
  evicted += tally.evicted;
  coalesced += tally.coalesced;
  vetoed += tally.vetoed;
  ordered += tally.ordered;
  told += tally.told;
  subscriptions += tally.subscriptions;
  threads += tally.threads;
  buses += tally.buses;
}

std::string take_over(const std::string& file, Totals& totals) {
  std::ifstream in(file);
  if (!in) {
    if (errno == ENOENT) return "";
    return file + " cannot be read: " + std::strerror(errno);
  }
  std::stringstream read;
  read << in.rdbuf();
  const std::string text = read.str();
  const std::string first = text.substr(0, text.find('\n'));
  const std::string wanted = std::string(kFirstLine) + kVersion;
  if (first.rfind(kFirstLine, 0) != 0)
    return file + " is not what a soak has left; name another file";
  if (first != wanted)
    return file + " counts what " + first.substr(std::strlen(kFirstLine)) +
           " did, and this is ringmain " + kVersion + "; name another file, or remove it";
  Totals found;
  std::string name;
  read.ignore(static_cast<std::streamsize>(first.size()) + 1);
  for (const auto& [expected, member] : Totals::names()) read >> name >> found.*member;
  // Whatever is not exactly as it would be written was not written by a soak.
  if (text_of(found) != text) return file + " is damaged; remove it to begin anew";
  if (found.faults != 0)
    return file + " tells of " + std::to_string(found.faults) + " broken promises (seed " +
           std::to_string(found.seed) + "); mend them, then remove it to begin anew";
  totals = found;
  return "";
}

std::string save(const std::string& file, const Totals& totals) {
  Draft draft(file + ".new");
  if (draft.become(file, text_of(totals))) return "";
  return file + " cannot be written: " + std::strerror(errno);
}

}  // namespace ringmain::stress
