// A source's life that can be interrupted at each moment at which it calls CUPTI.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/source_fixture.hpp"

namespace ringmain::cuda {

constexpr auto kPatience = std::chrono::minutes(10);

/// While it lives: at the `at`-th call of CUPTI's that this thread makes, counted from 0, `act` is
/// called, and at each later one `then`. What `act` returns is what CUPTI answers; 0: it goes on.
class Moment {
 public:
  Moment(int at, std::function<int()> act, std::function<void()> then = {})
      : at_(at), act_(std::move(act)), then_(std::move(then)) {
    fake_cupti_script(&Moment::come, this);
  }
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;
  ~Moment() { fake_cupti_script(nullptr, nullptr); }
  [[nodiscard]] bool came() const { return calls_ > at_; }

 private:
  static int come(const char*, void* with) {
    auto& self = *static_cast<Moment*>(with);
    if (std::this_thread::get_id() != self.thread_) return 0;
    const int now = self.calls_++;
    if (now == self.at_) return self.act_();
    if (now > self.at_ && self.then_) self.then_();
    return 0;
  }
  const std::thread::id thread_ = std::this_thread::get_id();
  const int at_;
  int calls_ = 0;
  std::function<int()> act_;
  std::function<void()> then_;
};

enum class Doing { attach, detach, lend, take_back };

/// A source that is about to do something.
struct Life {
  explicit Life(Doing what) : doing(what) {
    if (what != Doing::attach) attach();
    if (what == Doing::take_back) {
      EXPECT_TRUE(source.lend("a tool").value());
    }
  }
  void attach() {
    auto made = Source::attach(bus);
    if (made)
      source = std::move(made).value();
    else
      error = made.error();
  }
  void take(const Result<bool>& from) {
    if (from)
      answer = from.value();
    else
      error = from.error();
  }
  /// Does it.
  void go_on() {
    if (doing == Doing::attach) attach();
    if (doing == Doing::detach) detached = source.detach();
    if (doing == Doing::lend) take(source.lend("another tool"));
    if (doing == Doing::take_back) take(source.take_back());
  }

  const Doing doing;
  TestBus bus;
  Heard<EventRecord> heard = bus.heard<EventRecord>();
  Heard<SourceNotice> said = bus.heard<SourceNotice>();
  Source source;
  std::optional<Error> error;
  std::optional<bool> answer;
  std::optional<Detached> detached;
};

inline void elsewhere(const std::function<void()>& act) {
  std::thread(act).join();
}

}  // namespace ringmain::cuda
