// Does the bus do what it promises, whatever is asked of it in whatever order? Runs cases made from
// seeds, each in a child process, so that one that crashes or hangs is found like any other; cuts
// what fails down to the operations that matter, and prints them.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fuzz/bus_under_test.hpp"

namespace ringmain::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

struct Wishes {
  std::uint64_t seed =
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) %
      1'000'000'000;
  std::uint64_t operations = 300;
  std::uint64_t cases = ~std::uint64_t{0};
  double seconds = 60;
  std::uint64_t shrink = 60;
  std::string replay;
};

constexpr const char* kHelp =
    "ringmain_fuzz [--seed N] [--operations N] [--cases N] [--seconds N] [--shrink N]\n"
    "ringmain_fuzz --replay FILE\n"
    "Asks for everything that the C++ API has, in an order made from a seed, and compares what\n"
    "happened with what was promised: on a bus without threads, on one that a single thread "
    "drives,\n"
    "and on one that several drive. Ends with 1 if a promise was broken, and prints its seed and "
    "the\n"
    "shortest list of operations that it found to break it.\n"
    "  --seed N        the first case's; the next one's is one more\n"
    "  --operations N  of each case (300)\n"
    "  --cases N       so many, however long they take\n"
    "  --seconds N     otherwise for so long (60)\n"
    "  --shrink N      so many seconds are spent on cutting a failing case down (60)\n"
    "  --replay FILE   instead: the operations that another run printed\n";

/// What a child leaves for its parent: how far it came, and what is wrong.
struct Shared {
  volatile std::uint64_t done;  // cases
  char words[8192];
};

std::string run_once(const Case& what, std::uint64_t* trace) {
  Faults faults;
  {
    BusUnderTest bus(what, faults);
    bus.run();
    if (trace != nullptr) *trace = bus.trace();
  }
  return faults.words();
}

std::string run_case(const Case& what) {
  std::uint64_t first = 0;
  std::string words = run_once(what, &first);
  if (!words.empty() || what.drive != Drive::manual) return words;
  std::uint64_t second = 0;
  words = run_once(what, &second);
  if (words.empty() && first != second) return "  without threads it did not run twice the same\n";
  return words;
}

/// Runs `body` in a child; "" or what went wrong, with words of its own for signals and hangs.
class Nursery {
 public:
  Nursery()
      : shared_(static_cast<Shared*>(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (shared_ == MAP_FAILED) std::abort();
  }
  /// `body` returns what is wrong, and counts what it has done.
  std::string run(const std::function<std::string(Shared&)>& body, bool quiet) {
    shared_->done = 0;
    shared_->words[0] = 0;
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) return "  fork() failed\n";
    if (child == 0) {
      if (quiet) (void)!::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
      const std::string words = body(*shared_);
      std::strncpy(shared_->words, words.c_str(), sizeof shared_->words - 1);
      std::exit(words.empty() ? 0 : 3);
    }
    return wait_for(child);
  }
  [[nodiscard]] std::uint64_t done() const { return shared_->done; }

 private:
  /// A case that makes no way for minutes hangs.
  std::string wait_for(pid_t child) {
    std::uint64_t seen = 0;
    auto since = Clock::now();
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      ::usleep(1000);
      if (shared_->done != seen) {
        seen = shared_->done;
        since = Clock::now();
      }
      if (Clock::now() - since < limit) continue;
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return "  it did not end\n";
    }
    if (WIFSIGNALED(status))
      return "  it died of signal " + std::to_string(WTERMSIG(status)) + "\n";
    if (WEXITSTATUS(status) == 0) return "";
    if (shared_->words[0] != 0) return shared_->words;
    return "  it ended with status " + std::to_string(WEXITSTATUS(status)) +
           ", by a sanitizer or by itself\n";
  }

  Shared* shared_;

 public:
  std::chrono::seconds limit{240};
};

/// Leaves out what is not needed to fail, for a while.
class Shrinking {
 public:
  Shrinking(Nursery& nursery, Case failing, const std::string& words, std::chrono::seconds limit)
      : nursery_(nursery),
        best_(std::move(failing)),
        kind_(kind(words)),
        end_(Clock::now() + limit) {}
  Case run() {
    nursery_.limit = std::chrono::seconds(20);
    for (std::size_t step = std::max<std::size_t>(1, best_.operations.size() / 2);; step /= 2) {
      const bool smaller = without(step);
      if (step == 1 && !smaller) break;
      if (over()) break;
      step = std::max<std::size_t>(2, smaller && step == 1 ? 4 : step);
    }
    for (std::size_t i = 0; i < best_.operations.size() && !over(); ++i) {
      for (std::size_t k = 0; k < 4; ++k) {
        Case simpler = best_;
        simpler.operations[i].with[k] = 0;
        if (best_.operations[i].with[k] != 0 && fails(simpler)) best_ = simpler;
      }
    }
    return best_;
  }

 private:
  [[nodiscard]] bool over() const { return Clock::now() > end_; }
  bool without(std::size_t step) {
    bool smaller = false;
    for (std::size_t at = 0; at < best_.operations.size() && !over();) {
      Case less = best_;
      const auto from = less.operations.begin() + static_cast<std::ptrdiff_t>(at);
      less.operations.erase(
          from, from + static_cast<std::ptrdiff_t>(std::min(step, less.operations.size() - at)));
      if (fails(less)) {
        best_ = less;
        smaller = true;
      } else {
        at += step;
      }
    }
    return smaller;
  }
  bool fails(const Case& what) {
    for (int i = 0; i < (what.drive == Drive::manual ? 1 : 6); ++i) {
      const std::string words = nursery_.run([&what](Shared&) { return run_case(what); }, true);
      if (!words.empty() && kind(words) == kind_) return true;
    }
    return false;
  }
  /// What failed, whichever event it was: another fault is another case.
  static std::string kind(const std::string& words) {
    std::string first = words.substr(0, words.find('\n'));
    std::erase_if(first, [](unsigned char c) { return std::isdigit(c) != 0; });
    return first;
  }

  Nursery& nursery_;
  Case best_;
  const std::string kind_;
  const Clock::time_point end_;
};

int tell(Nursery& nursery, const Case& failing, const std::string& words,
         std::chrono::seconds limit) {
  std::printf("ringmain_fuzz: a promise was broken:\n%s", words.c_str());
  std::fflush(stdout);
  const Case least = Shrinking(nursery, failing, words, limit).run();
  const std::string again = nursery.run([&least](Shared&) { return run_case(least); }, false);
  std::printf(
      "%zu of %zu operations are enough; write them into a file for --replay:\n%s%s",
      least.operations.size(), failing.operations.size(), to_text(least).c_str(),
      again.empty() ? "This time they did not fail: it takes luck as well.\n" : again.c_str());
  return 1;
}

int run(const Wishes& wishes) {
  enum : std::uint64_t { kCasesOfAChild = 16 };
  Nursery nursery;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(wishes.seconds));
  const bool counted = wishes.cases != ~std::uint64_t{0};
  std::uint64_t done = 0;
  while (done < wishes.cases && (counted || Clock::now() < end)) {
    const std::uint64_t now = std::min<std::uint64_t>(kCasesOfAChild, wishes.cases - done);
    const std::string words = nursery.run(
        [&](Shared& shared) {
          for (std::uint64_t i = 0; i < now; ++i) {
            const std::string wrong =
                run_case(make_case(wishes.seed + done + i, wishes.operations));
            if (!wrong.empty()) return wrong;
            shared.done = i + 1;
          }
          return std::string();
        },
        false);
    if (!words.empty()) {
      // A leak is only seen at the child's end: then it is told as the last case's.
      const std::uint64_t seed = wishes.seed + done + std::min(nursery.done(), now - 1);
      std::printf("seed %llu: repeat it with --seed %llu --operations %llu --cases 1\n",
                  static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(wishes.operations));
      return tell(nursery, make_case(seed, wishes.operations), words,
                  std::chrono::seconds(wishes.shrink));
    }
    done += now;
  }
  std::printf("%llu cases of %llu operations from seed %llu on, no promise broken\n",
              static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(wishes.operations),
              static_cast<unsigned long long>(wishes.seed));
  return 0;
}

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "ringmain_fuzz: %s; --help says what it takes.\n", what.c_str());
  std::exit(2);
}

std::uint64_t number(const std::string& word, const std::string& value) {
  char* rest = nullptr;
  const std::uint64_t n = std::strtoull(value.c_str(), &rest, 10);
  if (value.empty() || *rest != '\0' || value[0] == '-')
    refuse(word + " wants a whole number, not '" + value + "'");
  return n;
}

Wishes read(int argc, char** argv) {
  Wishes wishes;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--help" || word == "-h") {
      std::fputs(kHelp, stdout);
      std::exit(0);
    }
    std::string value;
    if (const auto at = word.find('='); at != std::string::npos) {
      value = word.substr(at + 1);
      word.resize(at);
    } else if (i + 1 < argc) {
      value = argv[++i];
    }
    if (word == "--seed") {
      wishes.seed = number(word, value);
    } else if (word == "--operations") {
      wishes.operations = number(word, value);
      if (wishes.operations == 0 || wishes.operations > 100'000)
        refuse("--operations wants 1 to 100000, not '" + value + "'");
    } else if (word == "--cases") {
      wishes.cases = number(word, value);
    } else if (word == "--seconds") {
      wishes.seconds = static_cast<double>(number(word, value));
    } else if (word == "--shrink") {
      wishes.shrink = number(word, value);
    } else if (word == "--replay") {
      if (value.empty()) refuse("--replay wants a file");
      wishes.replay = value;
    } else {
      refuse("it does not know '" + word + "'");
    }
  }
  return wishes;
}

int replay(const std::string& file) {
  std::ifstream in(file);
  if (!in) refuse(file + " cannot be read");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  Case what;
  if (const std::string wrong = from_text(text, what); !wrong.empty()) refuse(file + ": " + wrong);
  Nursery nursery;
  const std::string words = nursery.run([&what](Shared&) { return run_case(what); }, false);
  std::printf("%s", words.empty() ? "no promise broken\n" : words.c_str());
  return words.empty() ? 0 : 1;
}

}  // namespace
}  // namespace ringmain::fuzz

int main(int argc, char** argv) {
  using namespace ringmain::fuzz;
  const Wishes wishes = read(argc, argv);
  return wishes.replay.empty() ? run(wishes) : replay(wishes.replay);
}
