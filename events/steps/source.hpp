// Which training step is it? Scopes in the training loop publish it on `train.step`.
//
//   auto steps = step::Source::attach(bus).value();
//   for (std::uint64_t n = 0; n < 1000; ++n) {
//     const auto step = steps.step(n);
//     { const auto forward = steps.phase(kForward); … }
//   }
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "../../bus/bus.hpp"

#include "../step.hpp"

namespace ringmain::step {

namespace detail {
/// What the scopes of one source share. Not for users of it.
struct StepCore {
  using Clock = std::chrono::steady_clock;

  explicit StepCore(Publisher<Step> publisher) : said(std::move(publisher)) {}

  void begin(const Step& where) noexcept {
    here = where;
    number = where.step;
    publish(where);
  }
  void end(Step where, const Step& before, Clock::time_point began) noexcept {
    where.edge = Edge::end;
    where.took_ns = std::chrono::nanoseconds(Clock::now() - began).count();
    publish(where);
    here = before;
    number = before.step;
  }
  void publish(const Step& where) noexcept { (void)said.publish(where); }  // its ledger knows

  Publisher<Step> said;
  Step here{};
  std::atomic<std::uint64_t> number{0};
};
}  // namespace detail

/// Threads: scopes belong to one thread, the training loop's; current() may be asked by any. The
/// bus and the source must outlive the scopes. Each edge costs a look at the clock and a publish.
class Source {
 public:
  /// no_memory: no lane is left for its publisher.
  static Result<Source> attach(Bus& bus) {
    auto said = bus.channel<Step>().publisher(PublisherOptions{});
    if (!said) return said.error();
    return Source(std::move(said).value());
  }

  /// Ends what it began, also when an exception leaves it.
  class [[nodiscard]] Scope {
   public:
    Scope(Scope&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)),
          here_(other.here_),
          before_(other.before_),
          began_(other.began_) {}
    Scope& operator=(Scope&&) = delete;
    ~Scope() {
      if (core_ != nullptr) core_->end(here_, before_, began_);
    }

   private:
    friend class Source;
    using Clock = std::chrono::steady_clock;
    Scope(detail::StepCore& core, const Step& here)
        : core_(&core), here_(here), before_(core.here) {
      core.begin(here);
    }

    detail::StepCore* core_;
    Step here_;
    Step before_;
    Clock::time_point began_ = Clock::now();
  };

  /// A step of that number; the phases and micro-batches until its end are its own.
  Scope step(std::uint64_t number) { return {*core_, {number, Name{}, 0, Edge::begin, 0}}; }
  /// A phase of the current step. Make its Name before the loop: that takes a lock.
  Scope phase(Name name) {
    Step here = core_->here;
    here.phase = name;
    return {*core_, here};
  }
  /// A micro-batch, from 1, of the current step or phase.
  Scope micro_batch(std::uint32_t number) {
    Step here = core_->here;
    here.micro_batch = number;
    return {*core_, here};
  }

  /// The number of the step that began last and is not over; 0 outside a step. Threads: any.
  [[nodiscard]] std::uint64_t current() const noexcept { return core_->number; }
  /// The account of what was said. Threads: the training loop's.
  [[nodiscard]] Ledger ledger() const noexcept { return core_->said.ledger(); }

 private:
  explicit Source(Publisher<Step> said)
      : core_(std::make_unique<detail::StepCore>(std::move(said))) {}

  std::unique_ptr<detail::StepCore> core_;
};

}  // namespace ringmain::step
