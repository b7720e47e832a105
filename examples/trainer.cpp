// What does a training loop look like that publishes what it does? Loader, ranks, all-reduce and
// checkpoints publish; a memory budget vetoes, a watch names a step that is stuck.
//
// It trains for real, a linear model by gradient descent, in rounds with and without the bus, and
// prints what the bus cost: medians of step times, the rounds interleaved so that a machine that
// changes its speed changes both.
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <ringmain/bus/bus.hpp>
#include <ringmain/events/steps/source.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using ringmain::EventOf;
using ringmain::field;
using ringmain::Unit;

struct Loaded {
  std::uint64_t batch = 0;
  std::uint64_t bytes = 0;
};
constexpr auto describe(EventOf<Loaded>) {
  return ringmain::event("trainer.loaded", field<&Loaded::batch>("batch", Unit::id),
                         field<&Loaded::bytes>("bytes", Unit::bytes));
}
struct Scratch {  // published before it is taken: a budget may say no
  std::uint64_t bytes = 0;
};
constexpr auto describe(EventOf<Scratch>) {
  return ringmain::event("trainer.scratch", field<&Scratch::bytes>("bytes", Unit::bytes));
}
struct Reduced {
  std::uint64_t step = 0;
  std::int64_t waited_ns = 0;  // of one rank, for the slowest
};
constexpr auto describe(EventOf<Reduced>) {
  return ringmain::event("trainer.reduced", field<&Reduced::step>("step", Unit::id),
                         field<&Reduced::waited_ns>("waited_ns", Unit::ns));
}
struct Saved {
  std::uint64_t bytes = 0;
};
constexpr auto describe(EventOf<Saved>) {
  return ringmain::event("trainer.saved", field<&Saved::bytes>("bytes", Unit::bytes));
}

constexpr std::size_t kRanks = 2, kWeights = 256, kRows = 256, kSaveEvery = 10;
constexpr std::chrono::seconds kStuckAfter{1};
constexpr std::uint64_t kLongEvery = 8;  // each such batch is twice as long, and over the budget
constexpr std::uint64_t kBudgetBytes = kRows * sizeof(float);

struct Options {
  std::uint64_t steps = 1000;
  std::uint64_t stall = 0;  // from that step on rank 1 stops once, until found stuck; 0: never
  bool json = false;
};

struct Batch {
  std::vector<float> rows, wanted;
};

/// Rows drawn from a fixed sequence, wanted values from a known model: the loss must fall.
Batch make_batch(std::uint64_t number) {
  const std::size_t rows = number % kLongEvery == 0 ? 2 * kRows : kRows;
  Batch batch{std::vector<float>(rows * kWeights), std::vector<float>(rows)};
  std::uint64_t random = number * 0x9e3779b97f4a7c15ull + 1;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t w = 0; w < kWeights; ++w) {
      random = random * 6364136223846793005ull + 1442695040888963407ull;
      const float x = static_cast<float>(random >> 40) / 16777216.0f - 0.5f;
      batch.rows[r * kWeights + w] = x;
      batch.wanted[r] += x * static_cast<float>(w % 7);
    }
  }
  return batch;
}

/// What the loader puts in and the ranks take out: a few batches at a time.
class Queue {
 public:
  void put(Batch batch) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return batches_.size() < 2 * kRanks; });
    batches_.push_back(std::move(batch));
    changed_.notify_all();
  }
  Batch take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !batches_.empty(); });
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    changed_.notify_all();
    return batch;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> batches_;
};

/// All that publishes, and all that listens. A training loop without it publishes nothing.
class Publishers {
 public:
  explicit Publishers(ringmain::Bus& bus)
      : loaded(bus.channel<Loaded>()),
        scratch(bus.channel<Scratch>()),
        reduced(bus.channel<Reduced>()),
        saved(bus.channel<Saved>()),
        steps(ringmain::step::Source::attach(bus).value()),
        edges_(bus.channel<ringmain::step::Step>().mailbox()),
        watch_([this](const std::stop_token& stop) { watch(stop); }) {
    budget_ = scratch.subscribe_inline([](const Scratch& s) {
      static const ringmain::Name why("over the memory budget");
      return s.bytes > kBudgetBytes ? ringmain::Verdict::veto(why) : ringmain::Verdict::allow();
    });
    waits_ = reduced.subscribe([this](const Reduced& r) { waited_ns += r.waited_ns; });
  }

  ringmain::Channel<Loaded>& loaded;
  ringmain::Channel<Scratch>& scratch;
  ringmain::Channel<Reduced>& reduced;
  ringmain::Channel<Saved>& saved;
  ringmain::step::Source steps;
  std::int64_t waited_ns = 0;           // the worker's, until the bus is flushed
  std::atomic<std::uint64_t> stuck{0};  // the last stuck step; 0: none

 private:
  /// A step that began and has published nothing for long is stuck. This thread looks at intervals,
  /// so that neither a worker nor the training need wake it.
  void watch(const std::stop_token& stop) {
    std::uint64_t open = 0;
    auto news = Clock::now();
    std::mutex mutex;
    std::unique_lock lock(mutex);
    while (!sleep_.wait_for(lock, stop, std::chrono::milliseconds(50), [] { return false; }) &&
           !stop.stop_requested()) {
      const auto read = [&open](const ringmain::step::Step& s) {
        if (s.phase.id() == 0) open = s.edge == ringmain::step::Edge::begin ? s.step : 0;
      };
      while (edges_.drain(read) != 0) news = Clock::now();
      if (open != 0 && Clock::now() - news >= kStuckAfter) stuck = open;
    }
  }

  std::condition_variable_any sleep_;
  ringmain::Subscription budget_, waits_;
  ringmain::Mailbox<ringmain::step::Step> edges_;
  std::jthread watch_;  // last: it ends first
};

class Trainer {
 public:
  explicit Trainer(Options options) : options_(options), weights_(kWeights) {}

  /// Trains for `steps` more; the time of each, in microseconds, is appended to `took_us`.
  void train(std::uint64_t steps, Publishers* out, std::vector<double>& took_us) {
    const std::uint64_t first = done_ + 1;
    done_ += steps;
    std::barrier<> together(kRanks);
    Queue queue;
    std::vector<std::jthread> threads;
    threads.emplace_back([&] { load(queue, first, out); });
    for (std::uint32_t rank = 1; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] { compute(rank, first, queue, together, out, nullptr); });
    compute(0, first, queue, together, out, &took_us);
  }

  [[nodiscard]] const std::vector<double>& losses() const { return losses_; }
  [[nodiscard]] std::uint64_t halved() const { return halved_; }
  [[nodiscard]] std::uint64_t checkpoints() const { return checkpoints_; }

 private:
  struct alignas(128) Part {
    std::array<float, kWeights> gradient{};
    double loss = 0;
    std::size_t rows = 0;
  };

  void load(Queue& queue, std::uint64_t first, Publishers* out) {
    for (std::uint64_t n = kRanks * (first - 1) + 1; n <= kRanks * done_; ++n) {
      Batch batch = make_batch(n);
      if (out != nullptr) (void)out->loaded.publish({n, batch.rows.size() * sizeof(float)});
      queue.put(std::move(batch));
    }
  }

  void compute(std::uint32_t rank, std::uint64_t first, Queue& queue, std::barrier<>& together,
               Publishers* out, std::vector<double>* took_us) {
    static const ringmain::Name kForward("compute"), kReduce("reduce"), kUpdate("update");
    using Scope = std::optional<ringmain::step::Source::Scope>;
    const bool publishes = out != nullptr && took_us != nullptr;  // steps are one thread's to say
    const auto phase = [&](ringmain::Name name) {
      return publishes ? Scope(out->steps.phase(name)) : Scope();
    };
    for (std::uint64_t step = first; step <= done_; ++step) {
      const auto began = Clock::now();
      const Scope whole = publishes ? Scope(out->steps.step(step)) : Scope();
      {
        const Scope forward = phase(kForward);
        learn(parts_[rank], queue.take(), out);
        if (out != nullptr && rank == 1 && options_.stall != 0 && step >= options_.stall)
          stall(step, *out);
      }
      {
        const Scope reduce = phase(kReduce);
        const auto asked = Clock::now();
        together.arrive_and_wait();  // all gradients are there
        if (out != nullptr) {
          const std::chrono::nanoseconds waited = Clock::now() - asked;
          (void)out->reduced.publish({step, waited.count()});
        }
      }
      if (rank == 0) {
        const Scope update_scope = phase(kUpdate);
        update(step, out);
      }
      together.arrive_and_wait();  // all see the new weights
      if (took_us != nullptr)
        took_us->push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count());
    }
  }

  /// The gradient of one batch: at once if the scratch memory is granted, else in two halves.
  void learn(Part& part, const Batch& batch, Publishers* out) {
    const std::size_t rows = batch.wanted.size();
    part = Part{};
    std::size_t at_once = rows;
    if (out != nullptr &&
        out->scratch.publish({rows * sizeof(float)}) == ringmain::PublishCode::vetoed) {
      at_once = rows / 2;
      ++halved_;
    }
    std::vector<float> errors(at_once);
    for (std::size_t from = 0; from < rows; from += at_once) {
      for (std::size_t r = 0; r < at_once; ++r) {
        const float* x = &batch.rows[(from + r) * kWeights];
        errors[r] = -batch.wanted[from + r];
        for (std::size_t w = 0; w < kWeights; ++w) errors[r] += x[w] * weights_[w];
        for (std::size_t w = 0; w < kWeights; ++w) part.gradient[w] += errors[r] * x[w];
        part.loss += static_cast<double>(errors[r]) * static_cast<double>(errors[r]);
      }
    }
    part.rows = rows;
  }

  /// By rank 0, between two barriers: the others wait.
  void update(std::uint64_t step, Publishers* out) {
    double loss = 0;
    std::size_t rows = 0;
    for (const Part& part : parts_) loss += part.loss, rows += part.rows;
    for (std::size_t w = 0; w < kWeights; ++w) {
      float sum = 0;
      for (const Part& part : parts_) sum += part.gradient[w];
      weights_[w] -= 0.5f * sum / static_cast<float>(rows);
    }
    losses_.push_back(loss / static_cast<double>(rows));
    if (step % kSaveEvery != 0) return;
    checkpoint_.resize(weights_.size() * sizeof(float));
    std::memcpy(checkpoint_.data(), weights_.data(), checkpoint_.size());
    ++checkpoints_;
    if (out != nullptr) (void)out->saved.publish({checkpoint_.size()});
  }

  /// Goes on once the watch has named the step, or after a minute, which the results then show.
  void stall(std::uint64_t step, const Publishers& out) {
    const auto end = Clock::now() + std::chrono::minutes(1);
    while (out.stuck != step && Clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    options_.stall = 0;
  }

  Options options_;
  std::uint64_t done_ = 0;
  std::vector<float> weights_;
  std::array<Part, kRanks> parts_;
  std::vector<double> losses_;
  std::vector<std::byte> checkpoint_;
  std::atomic<std::uint64_t> halved_{0};
  std::uint64_t checkpoints_ = 0;
};

double median(std::vector<double> of) {
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

int usage(std::FILE* to, int code) {
  std::fputs(
      "usage: example_trainer [--steps N] [--stall N] [--json]\n"
      "  --steps N   steps with the bus, and as many without (1000)\n"
      "  --stall N   from step N on let a rank stop once, until the watch finds the step stuck\n"
      "  --json      the summary as one JSON object\n",
      to);
  return code;
}

bool number(const char* text, std::uint64_t& to) {
  const char* end = text + std::strlen(text);
  return std::from_chars(text, end, to).ptr == end && end != text && to > 0 && to <= 1'000'000;
}

struct Summary {
  double with_us, without_us;
  std::uint64_t offered = 0, vetoed = 0, lost = 0;
};

void print(const Options& options, const Trainer& trainer, const Publishers& out,
           const Summary& s) {
  const double first = trainer.losses().front(), last = trainer.losses().back();
  const double percent = 100 * (s.with_us / s.without_us - 1);
  using u = unsigned long long;
  if (options.json) {
    std::printf(
        "{\"steps\": %llu, \"loss_first\": %.6g, \"loss_last\": %.6g, "
        "\"step_us_with\": %.3f, \"step_us_without\": %.3f, \"overhead_percent\": %.3f, "
        "\"events\": %llu, \"vetoed\": %llu, \"lost\": %llu, \"checkpoints\": %llu, "
        "\"stuck_step\": %llu}\n",
        u(options.steps), first, last, s.with_us, s.without_us, percent, u(s.offered), u(s.vetoed),
        u(s.lost), u(trainer.checkpoints()), u(out.stuck));
    return;
  }
  std::printf("loss %.3g -> %.3g, %llu checkpoints; ranks waited %.0f us a step for each other\n",
              first, last, u(trainer.checkpoints()),
              static_cast<double>(out.waited_ns) / 1e3 / static_cast<double>(options.steps));
  std::printf("%llu events, %llu lost; %llu batches halved by the memory budget's veto\n",
              u(s.offered), u(s.lost), u(s.vetoed));
  if (out.stuck != 0) std::printf("step %llu was stuck\n", u(out.stuck));
  std::printf("median step: %.1f us with the bus, %.1f us without: %+.2f %%\n", s.with_us,
              s.without_us, percent);
}

}  // namespace

int main(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--help") return usage(stdout, 0);
    if (word == "--json") {
      options.json = true;
      continue;
    }
    if ((word != "--steps" && word != "--stall") || i + 1 == count ||
        !number(words[i + 1], word == "--steps" ? options.steps : options.stall)) {
      std::fprintf(stderr, "trainer: '%s' is not understood; numbers are 1 to 1000000\n", words[i]);
      return usage(stderr, 2);
    }
    ++i;
  }
  if (options.stall > options.steps) {
    std::fprintf(stderr, "trainer: --stall comes after --steps; give a step that there is\n");
    return 2;
  }

  ringmain::Bus bus;
  Trainer trainer(options);
  std::vector<double> with, without;
  Publishers out(bus);
  const std::uint64_t round = std::max<std::uint64_t>(1, options.steps / 20);
  for (std::uint64_t left = options.steps, n = 0; left > 0; ++n) {
    const std::uint64_t now = std::min(left, round);
    for (const bool first : {true, false}) {  // with, without; without, with; …
      const bool publishes = first == (n % 2 == 0);
      trainer.train(now, publishes ? &out : nullptr, publishes ? with : without);
    }
    left -= now;
  }
  if (!bus.flush(std::chrono::seconds(60))) return 1;

  Summary summary{median(with), median(without)};
  for (const auto& channel : bus.stats().channels) {
    if (channel.mailbox) continue;
    summary.offered += channel.offered;
    summary.vetoed += channel.vetoed;
    summary.lost += channel.offered - channel.accepted - channel.vetoed + channel.evicted;
  }
  print(options, trainer, out, summary);
  const bool learned = trainer.losses().back() < trainer.losses().front();
  const bool found = options.stall == 0 || out.stuck >= options.stall;
  return learned && found && bus.verify_accounting() && summary.vetoed == trainer.halved() ? 0 : 1;
}
