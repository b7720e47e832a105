// A program that compiles things: it publishes each compile, hears how it ended, and is refused
// further compiles once it serves.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <ringmain/adapters/sources/compile/scope.hpp>

using namespace ringmain;

int main() {
  Bus bus;
  compile::Registry compiles(bus);
  std::atomic<bool> serving{false};
  std::atomic<int> ended{0};
  (void)compiles.on_end([&ended](const compile::End& end) {  // on a worker
    const char* const how = end.outcome == compile::Outcome::completed   ? "completed"
                            : end.outcome == compile::Outcome::cancelled ? "cancelled: "
                                                                         : "failed: ";
    const std::string words = how + std::string(end.reason.view());
    std::printf("%s %s\n", std::string(end.function.view()).c_str(), words.c_str());
    ++ended;
  });
  const Name why("not while serving");
  (void)compiles.guard([&](const compile::Start&) {  // in the thread that compiles, before it does
    return serving ? Verdict::veto(why) : Verdict::allow();
  });

  const auto build = [&compiles](const char* function, bool possible) {
    compile::Scope one(compiles, {.trigger = compile::Trigger::dynamo, .function = Name(function)});
    if (!one) return false;
    one.run([possible] {
      if (!possible) throw std::runtime_error("no such operator");
    });
    return true;
  };
  if (!build("forward", true)) return 1;
  try {
    (void)build("backward", false);
    return 1;
  } catch (const std::runtime_error&) {  // the compile's own error; the end has told it, too
  }
  serving = true;
  if (build("another", true)) return 1;
  return bus.flush(std::chrono::seconds(10)) && ended == 3 ? 0 : 1;
}
