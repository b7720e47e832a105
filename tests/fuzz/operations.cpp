#include "tests/fuzz/operations.hpp"

#include <sstream>

#include "tests/fuzz/events.hpp"

namespace ringmain::fuzz {
namespace {

constexpr std::array<std::string_view, kDoings> kWhat{
    "configure", "publisher", "say",      "speak", "leave",   "hear", "box", "take",
    "reset",     "touch",     "interest", "rest",  "deliver", "time", "look"};
/// Of 100.
constexpr std::array<std::uint32_t, kDoings> kOften{3, 8, 30, 8, 3, 13, 5, 9, 4, 4, 1, 4, 5, 1, 2};
constexpr std::array<std::string_view, 3> kDrives{"manual", "one", "several"};

}  // namespace

Case make_case(std::uint64_t seed, std::size_t operations) {
  Random random(seed);
  Case made;
  made.drive = static_cast<Drive>(random.below(3));
  made.workers = 1 + random.below(3);
  made.threads = made.drive == Drive::several ? 2 + random.below(3) : 1;
  made.ending = random();
  for (std::size_t i = 0; i < operations; ++i) {
    Operation op;
    std::uint32_t at = random.below(100);
    std::size_t what = 0;
    // First of all channels are configured, then somebody hears.
    if (i < 4)
      what = static_cast<std::size_t>(Do::configure);
    else if (i < 7)
      what = static_cast<std::size_t>(Do::hear);
    else
      while (at >= kOften[what]) at -= kOften[what++];
    op.what = static_cast<Do>(what);
    for (auto& w : op.with) w = random();
    made.operations.push_back(op);
  }
  return made;
}

std::string to_text(const Case& what) {
  std::ostringstream text;
  text << kDrives[static_cast<std::size_t>(what.drive)] << " " << what.workers << " "
       << what.threads << " " << what.ending << "\n";
  for (const Operation& op : what.operations) {
    text << kWhat[static_cast<std::size_t>(op.what)];
    for (const auto w : op.with) text << " " << w;
    text << "\n";
  }
  return text.str();
}

std::string from_text(std::string_view text, Case& what) {
  std::istringstream lines{std::string(text)};
  std::string line;
  bool first = true;
  while (std::getline(lines, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string word;
    words >> word;
    const auto index_in = [&word](const auto& all) {
      std::size_t i = 0;
      while (i < all.size() && all[i] != word) ++i;
      return i;
    };
    if (first) {
      const std::size_t drive = index_in(kDrives);
      if (drive == kDrives.size() || !(words >> what.workers >> what.threads >> what.ending) ||
          what.threads == 0 || what.threads > 16 || what.workers == 0 || what.workers > 32)
        return "the first line must say manual, one or several, workers, threads and an ending, "
               "not '" +
               line + "'";
      what.drive = static_cast<Drive>(drive);
      first = false;
      continue;
    }
    Operation op;
    const std::size_t doing = index_in(kWhat);
    if (doing == kDoings) return "there is no operation '" + word + "'";
    op.what = static_cast<Do>(doing);
    for (auto& w : op.with) {
      if (!(words >> w)) return "an operation has four numbers, not '" + line + "'";
    }
    what.operations.push_back(op);
  }
  return first ? "there is nothing to replay" : "";
}

}  // namespace ringmain::fuzz
