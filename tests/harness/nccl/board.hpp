// What is a plugin doing right now, and what did it do wrong? The page that a scenario's process
// shares with the one that judges it, which reads it after a crash too.
//
// Threads write relaxed, each into a row of its own: the board orders nothing between the threads
// that call a plugin, so that ThreadSanitizer sees the plugin's own order alone.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringmain::nccl_conformance {

/// What was found wrong: the rule's name, which names.hpp explains, and what happened.
struct Finding {
  std::string rule;
  std::string text;
};

/// What a signal handler is told of a crash.
struct Crash {
  std::uintptr_t address = 0;  // that was not to be used
  bool has_address = false;    // false: the processor does not say, or it was no access
  bool no_code = false;        // it is the instruction that is not there
};

class Board {
 public:
  static constexpr std::size_t kRows = 64;
  static constexpr std::size_t kGone = 256;
  static constexpr std::size_t kFindings = 32;
  static constexpr std::size_t kOfOneRule = 3;  // further ones are only counted

  /// A fresh board in memory that children of this process share. Throws std::bad_alloc.
  static Board& make();

  /// Says what this thread drives until the next call; the name must live forever.
  void drive(const char* rule) noexcept;
  [[nodiscard]] const char* driven() const noexcept;
  /// This thread is inside `function` of the plugin, until leave(); what goes wrong there breaks
  /// `rule`, if it is not null.
  void enter(const char* function, const char* rule) noexcept;
  void leave() noexcept;
  /// This thread's name in findings; the text must live forever.
  void name(const char* thread) noexcept;

  /// Counts a finding, and keeps its words unless there are too many.
  void found(const char* rule, const char* format, ...) noexcept
      __attribute__((format(printf, 3, 4)));
  /// This page was a communicator's name, and is taken away: a crash on it is by that. The last
  /// kGone of them are remembered.
  void gone(const void* page, std::size_t bytes) noexcept;
  /// For a signal handler: the calling thread is the one that crashed.
  void crashed(const Crash& how) noexcept;
  /// The scenario is over.
  void finished() noexcept { done_.store(true, std::memory_order_relaxed); }

  // What the judging process reads.
  [[nodiscard]] bool done() const noexcept { return done_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t calls() const noexcept;
  /// "stopEvent, called by progress 0", of a thread that is inside the plugin; empty if none is.
  [[nodiscard]] std::string inside() const;
  /// The rule that the crashed thread drove, or one that is inside the plugin; null if neither.
  [[nodiscard]] const char* rule_at_the_end() const noexcept;
  [[nodiscard]] std::string place_of_crash() const;
  /// " at 0x10, which is near NULL": what the address tells; empty if nothing does.
  [[nodiscard]] std::string address_of_crash() const;
  [[nodiscard]] std::vector<Finding> findings() const;

 private:
  struct alignas(128) Row {
    std::array<char, 24> thread{};  // its text, which is not in the memory of who judges
    std::atomic<const char*> rule{nullptr};
    std::atomic<const char*> function{nullptr};
    std::atomic<const char*> rule_inside{nullptr};
    std::atomic<std::uint64_t> calls{0};
  };
  struct Text {
    std::atomic<bool> ready{false};
    std::array<char, 48> rule;
    std::array<char, 240> text;
  };

  Row& row() noexcept;
  [[nodiscard]] bool on_a_name() const noexcept;
  /// By a thread outside of the plugin's functions, whose code was taken away.
  [[nodiscard]] bool without_code() const noexcept;
  static std::string place(const Row& row);

  std::array<Row, kRows> rows_;
  std::atomic<std::uint32_t> rows_taken_{0};
  std::atomic<std::uint32_t> texts_taken_{0};
  std::atomic<std::int32_t> crashed_row_{-1};
  std::atomic<bool> crashed_{false};
  Crash crash_;  // written before crashed_, by the thread that the process ends with
  std::array<std::atomic<std::uintptr_t>, kGone> gone_{};
  std::atomic<std::uint32_t> gone_taken_{0};
  std::atomic<std::uintptr_t> gone_bytes_{0};
  std::atomic<bool> done_{false};
  std::array<Text, kFindings> texts_;
};

}  // namespace ringmain::nccl_conformance
