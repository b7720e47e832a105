#include "tests/adapters/cuda/hazards/program.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <sstream>

namespace ringmain::cuda::hazards {
namespace {

constexpr std::array<const char*, 16> kNames{"make_stream",
                                             "end_stream",
                                             "make_event",
                                             "end_event",
                                             "record",
                                             "wait",
                                             "synchronize_event",
                                             "synchronize_stream",
                                             "synchronize_device",
                                             "allocate",
                                             "free",
                                             "allocate_async",
                                             "free_async",
                                             "use",
                                             "begin_capture",
                                             "end_capture"};
/// How often of each hundred.
constexpr std::array<double, 16> kWeights{6,   1.5, 6, 1, 14,  14, 2,   2,
                                          0.7, 3,   1, 4, 2.5, 40, 1.5, 2};

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  Program make(std::uint64_t seed) {
    Program program;
    program.seed = seed;
    const int deeds = between(30, 220);
    for (int thread = 0; thread < 2; ++thread)
      add(program, {.does = Does::make_stream, .stream = 2 + thread, .flag = chance(2)});
    add(program, {.does = Does::make_event, .event = 0});
    add(program, {.does = Does::allocate, .buffer = 0});
    for (int i = 0; i < deeds; ++i) add(program, one(program));
    program.attach_at = seed % 4 == 0 ? static_cast<std::size_t>(between(1, deeds)) : 0;
    return program;
  }

 private:
  int between(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }
  bool chance(int of) { return between(1, of) == 1; }
  static void add(Program& program, const Deed& deed) { program.deeds.push_back(deed); }
  Deed one(Program& program) {
    Deed deed = some();
    const bool waits = deed.does == Does::synchronize_event ||
                       deed.does == Does::synchronize_stream ||
                       deed.does == Does::synchronize_device;
    if (waits && chance(2)) {
      Deed other = some();
      while (other.does >= Does::synchronize_event && other.does <= Does::synchronize_device)
        other = some();
      other.thread = 1 - deed.thread;
      deed.meanwhile = static_cast<int>(program.others.size());
      program.others.push_back(other);
    }
    return deed;
  }
  Deed some() {
    Deed deed;
    deed.does = static_cast<Does>(kinds_(random_));
    deed.stream = chance(5) ? between(0, 1) : between(2, 6);
    if (deed.does == Does::make_stream) deed.stream = between(2, 6);
    deed.event = between(0, 5);
    deed.buffer = between(0, 3);
    deed.from = static_cast<unsigned>(between(0, 3));
    deed.upto = static_cast<unsigned>(between(static_cast<int>(deed.from) + 1, 4));
    deed.flag = chance(2);
    deed.thread = chance(4) ? 1 : 0;
    return deed;
  }

  std::mt19937_64 random_;
  std::discrete_distribution<int> kinds_{kWeights.begin(), kWeights.end()};
};

void write(std::ostringstream& to, const Deed& deed) {
  to << kNames[static_cast<std::size_t>(deed.does)] << " stream " << deed.stream << " event "
     << deed.event << " buffer " << deed.buffer << " [" << deed.from << ", " << deed.upto
     << ") flag " << deed.flag << " thread " << deed.thread;
}

}  // namespace

Program make_program(std::uint64_t seed) {
  return Maker(seed).make(seed);
}

std::string to_text(const Program& program) {
  std::ostringstream text;
  text << "seed " << program.seed << ", attached at " << program.attach_at << "\n";
  for (std::size_t i = 0; i < program.deeds.size(); ++i) {
    const Deed& deed = program.deeds[i];
    text << i << ": ";
    write(text, deed);
    if (deed.meanwhile >= 0) {
      text << "; meanwhile ";
      write(text, program.others[static_cast<std::size_t>(deed.meanwhile)]);
    }
    text << "\n";
  }
  return text.str();
}

}  // namespace ringmain::cuda::hazards
