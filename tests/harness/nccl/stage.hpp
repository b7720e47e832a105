// Where does a scenario play? The front end, the threads of a job that call it, and what the
// scenario needs to know of the plugin.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "tests/harness/nccl/board.hpp"
#include "tests/harness/nccl/front_end.hpp"
#include "tests/harness/nccl/model.hpp"

namespace ringmain::nccl_conformance {

/// A thread of the job's: does what is posted to it, in order.
class Actor {
 public:
  Actor(Board& board, const std::string& name, bool serial);
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  ~Actor();

  /// In a serial stage this waits until the work is done.
  void post(std::function<void()> work);
  /// Waits until all that was posted is done.
  void wait();
  /// How often anything was posted.
  [[nodiscard]] std::uint64_t posted();

 private:
  void run();

  Board& board_;
  const char* const name_;
  const bool serial_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::uint64_t posted_ = 0;
  bool busy_ = false;
  bool ends_ = false;
  std::thread thread_;
};

using Random = std::mt19937_64;

class Stage {
 public:
  struct Options {
    Release release = Release::r2_32;
    std::uint64_t seed = 1;
    bool serial = false;  // one thread at a time, in a fixed order
    bool own_mask =
        false;  // the mask is as the plugin sets it; else it is full, as RAS may have it
    /// Waits for what is on its way out of the plugin, where that is memory of this process.
    std::function<void()> settle{};
  };
  Stage(FrontEnd& front_end, Board& of_judge, const Options& chosen)
      : front(front_end), board(of_judge), options(chosen), random(chosen.seed) {}

  FrontEnd& front;
  Board& board;
  const Options options;
  Random random;

  /// The thread of that name, which begins with the first call.
  Actor& actor(const std::string& name);
  /// Waits until no actor has anything to do, though they post to each other.
  void wait_for_all();
  /// Ends the threads.
  void leave() { actors_.clear(); }

  /// Tells the plugin of the communicator, and sets the mask to all types.
  void open(Communicator& communicator);
  /// Waits for what is on its way out of the plugin, and is not the plugin's any more.
  void settle() const {
    if (options.settle) options.settle();
  }
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random() % bound; }
  /// A communicator of this process that the plugin was not yet told of.
  Communicator communicator(int rank = 0, int ranks = 2, int nodes = 2);
  /// The model of the front end, if that plays here.
  [[nodiscard]] Model* model() noexcept { return dynamic_cast<Model*>(&front); }

 private:
  std::vector<Actor*> all();

  std::mutex lock_;
  std::deque<std::pair<std::string, std::unique_ptr<Actor>>> actors_;
  std::uint64_t communicators_ = 0;
};

/// Says what this thread drives, while it lives.
class Driving {
 public:
  Driving(Stage& stage, const char* rule) : board_(stage.board), before_(board_.driven()) {
    board_.drive(rule);
  }
  Driving(const Driving&) = delete;
  Driving& operator=(const Driving&) = delete;
  ~Driving() { board_.drive(before_); }

 private:
  Board& board_;
  const char* const before_;
};

/// One scenario: what --scenario names.
struct Scenario {
  const char* name;
  const char* says;
  void (*play)(Stage&);
  bool by_real_front_end;  // NCCL's own code can play all of it
};
/// All of them, in order; the last has a null name.
extern const Scenario kScenarios[];

}  // namespace ringmain::nccl_conformance
