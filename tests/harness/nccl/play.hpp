// What happens in a job between a call and its end? The pieces of which scenarios are made: calls
// and plans, proxy threads that move slices, and a GPU that counts the works it began and ended.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "tests/harness/nccl/stage.hpp"

namespace ringmain::nccl_conformance {

/// Appends calls in one group, and makes a plan of them; `launched` is told of the plan between the
/// begin and the end of the group's end, on this thread.
Plan call(FrontEnd& front, const std::vector<Call>& calls, int channels,
          const std::function<void(Plan&)>& launched);
/// Same, of one call without a group of the user's.
Plan call(FrontEnd& front, const Call& only, int channels,
          const std::function<void(Plan&)>& launched);
void launch(FrontEnd& front, Plan& plan);
/// What NCCL does around the proxies' work of a plan: on the API's thread, a job's or CUDA's.
void enqueue(FrontEnd& front, Plan& plan, const std::function<void()>& post = {});

/// Which network a proxy works over.
struct Network {
  int steps = 4;  // of each operation
  int slice_steps = 2;
  bool restarts = false;   // a receive that gets no request begins its step again (Q5)
  int peer_waits_max = 3;  // a send is held up by its peer so often (Q6)
  bool is_net = true;      // else a transport whose sends are said to receive (Q18)
};

/// The operations that a proxy thread has under way, in pooled memory that is never cleared.
class Proxy {
 public:
  Proxy(FrontEnd& front, std::uint64_t seed) : front_(front), random_(seed) {}

  /// One receive and one send for each channel of each task, as a ring has them.
  void append(const Plan& plan, const Network& network);
  /// Appends one operation and direction, of this process or another.
  void append_one(const Sub& like, bool send, const Network& network);
  /// Tells of the appending, then moves everything to its end.
  void progress(void* context);
  /// Tells of the appending and of `passes` rounds, and leaves the rest where it is.
  void progress_and_stop(void* context, int passes);
  [[nodiscard]] std::uint64_t begun_ops() const noexcept { return begun_ops_; }
  [[nodiscard]] std::uint64_t begun_steps() const noexcept { return begun_steps_; }

 private:
  struct Flow {
    int posted = 0;
    int moved = 0;
    int done = 0;
    bool seen = false;
  };
  struct Active {
    ProxyArguments* arguments = nullptr;
    Network network;
    std::array<Flow, ProxyArguments::kSubs> flows{};
    bool begun = false;
  };

  ProxyArguments& take();
  void begin_new(void* context);
  bool pass();  // false: all is done
  bool pass(Active& active);
  bool post(Active& active, std::size_t sub);
  bool move(Active& active, std::size_t sub);
  bool acknowledge(Active& active, std::size_t sub);
  void end(Active& active);

  FrontEnd& front_;
  Random random_;
  std::vector<std::unique_ptr<ProxyArguments>> pool_;
  std::vector<ProxyArguments*> free_;
  std::vector<Active> active_;
  std::uint64_t begun_ops_ = 0;
  std::uint64_t begun_steps_ = 0;
};

/// A GPU's counters of begun and ended works, in rings of 64 that it laps.
class Device {
 public:
  static constexpr std::size_t kSlots = 64;
  static constexpr std::size_t kChannels = 64;

  /// The number of the channel's next work.
  std::uint64_t next(int channel) { return ++works_[static_cast<std::size_t>(channel)]; }
  [[nodiscard]] std::uint64_t last(int channel) const {
    return works_[static_cast<std::size_t>(channel)];
  }
  void begin(int channel, std::uint64_t work);
  void end(int channel, std::uint64_t work);
  struct Stamp {
    std::uint64_t counter = 0;
    std::uint64_t timer = 0;
  };
  [[nodiscard]] Stamp begun(int channel, std::uint64_t work) const;
  [[nodiscard]] Stamp ended(int channel, std::uint64_t work) const;

 private:
  using Ring = std::array<Stamp, kSlots>;
  std::array<Ring, kChannels> begun_{};
  std::array<Ring, kChannels> ended_{};
  std::array<std::uint64_t, kChannels> works_{};
  std::uint64_t timer_ = 1'756'135'989'724'672'000;
};

/// The host's side of KernelCh events: works that wait for the device's counters.
class KernelWatch {
 public:
  KernelWatch(FrontEnd& front, Device& device, Release release)
      : front_(front), device_(device), release_(release) {}

  /// A work on each channel of the plan's tasks; transfers of a pair share one.
  void append(const Plan& plan);
  /// Looks at each work's counters once; `between` runs after the look at the begun works. Returns
  /// how many are still waited for.
  std::size_t look(const std::function<void()>& between = {});
  /// Has the device begin and end all works, seen by a look each.
  void run();

 private:
  struct Work {
    ProxyArguments* arguments;
    bool begun = false;
  };
  FrontEnd& front_;
  Device& device_;
  const Release release_;
  std::vector<std::unique_ptr<ProxyArguments>> pool_;
  std::vector<ProxyArguments*> free_;
  std::vector<Work> works_;
};

}  // namespace ringmain::nccl_conformance
