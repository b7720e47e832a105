#include "tests/harness/nccl/board.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>
#include <sys/mman.h>

#include "tests/harness/nccl/rules.hpp"

namespace ringmain::nccl_conformance {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::int32_t kNoRow = -1;
thread_local std::int32_t own_row = kNoRow;

void copy(auto& to, std::string_view from) noexcept {
  const std::size_t length = std::min(from.size(), to.size() - 1);
  std::memcpy(to.data(), from.data(), length);
  to[length] = '\0';
}

}  // namespace

Board& Board::make() {
  void* const page =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  return *::new (page) Board();  // kept to the end: a child may write until then
}

Board::Row& Board::row() noexcept {
  if (own_row == kNoRow) {
    own_row = static_cast<std::int32_t>(rows_taken_.fetch_add(1, kRelaxed) % kRows);
  }
  return rows_[static_cast<std::size_t>(own_row)];
}

void Board::drive(const char* rule) noexcept {
  row().rule.store(rule, kRelaxed);
}

const char* Board::driven() const noexcept {
  return own_row == kNoRow ? nullptr : rows_[static_cast<std::size_t>(own_row)].rule.load(kRelaxed);
}

void Board::enter(const char* function, const char* rule) noexcept {
  Row& own = row();
  own.rule_inside.store(rule, kRelaxed);
  own.function.store(function, kRelaxed);
  own.calls.store(own.calls.load(kRelaxed) + 1, kRelaxed);  // rows are one thread's
}

void Board::leave() noexcept {
  row().function.store(nullptr, kRelaxed);
}

void Board::name(const char* thread) noexcept {
  auto& to = row().thread;
  (void)std::string_view(thread).copy(to.data(), to.size() - 1);
}

void Board::found(const char* rule, const char* format, ...) noexcept {
  std::size_t same = 0;
  for (const Text& text : texts_) {
    if (text.ready.load(std::memory_order_acquire) && text.rule.data() == std::string_view(rule)) {
      ++same;
    }
  }
  if (same >= kOfOneRule) return;
  const std::uint32_t place = texts_taken_.fetch_add(1, kRelaxed);
  if (place >= kFindings) return;
  Text& text = texts_[place];
  copy(text.rule, rule);
  std::va_list arguments;
  va_start(arguments, format);
  (void)std::vsnprintf(text.text.data(), text.text.size(), format, arguments);
  va_end(arguments);
  text.ready.store(true, std::memory_order_release);
}

void Board::gone(const void* page, std::size_t bytes) noexcept {
  gone_bytes_.store(bytes, kRelaxed);
  gone_[gone_taken_.fetch_add(1, kRelaxed) % kGone].store(reinterpret_cast<std::uintptr_t>(page),
                                                          kRelaxed);
}

void Board::crashed(const Crash& how) noexcept {
  crash_ = how;
  crashed_row_.store(own_row, kRelaxed);
  crashed_.store(true, kRelaxed);
}

bool Board::on_a_name() const noexcept {
  return crash_.has_address && std::ranges::any_of(gone_, [this](const auto& page) {
           const std::uintptr_t begin = page.load(kRelaxed);
           return begin != 0 && crash_.address - begin < gone_bytes_.load(kRelaxed);
         });
}

bool Board::without_code() const noexcept {
  const std::int32_t crashed = crashed_row_.load(kRelaxed);
  const bool in_a_call =
      crashed != kNoRow &&
      rows_[static_cast<std::size_t>(crashed)].function.load(kRelaxed) != nullptr;
  return crash_.no_code && !in_a_call;
}

std::uint64_t Board::calls() const noexcept {
  std::uint64_t sum = 0;
  for (const Row& row : rows_) sum += row.calls.load(kRelaxed);
  return sum;
}

std::string Board::place(const Row& row) {
  const char* const function = row.function.load(kRelaxed);
  const char* const thread = row.thread.data();
  if (function == nullptr) return {};
  return std::string(function) + ", called by thread " + (*thread != '\0' ? thread : "?");
}

std::string Board::inside() const {
  for (const Row& row : rows_) {
    if (row.function.load(kRelaxed) != nullptr) return place(row);
  }
  return {};
}

const char* Board::rule_at_the_end() const noexcept {
  if (crashed_.load(kRelaxed) && on_a_name()) return rules::kName;
  if (crashed_.load(kRelaxed) && without_code()) return rules::kThreads;
  const std::int32_t crashed = crashed_row_.load(kRelaxed);
  if (crashed != kNoRow) {
    const Row& row = rows_[static_cast<std::size_t>(crashed)];
    if (row.function.load(kRelaxed) != nullptr) return row.rule_inside.load(kRelaxed);
  }
  if (crashed_.load(kRelaxed)) return nullptr;  // outside the plugin's functions
  for (const Row& row : rows_) {
    if (row.function.load(kRelaxed) != nullptr) return row.rule_inside.load(kRelaxed);
  }
  return nullptr;
}

std::string Board::place_of_crash() const {
  const std::int32_t crashed = crashed_row_.load(kRelaxed);
  if (crashed != kNoRow) {
    std::string said = place(rows_[static_cast<std::size_t>(crashed)]);
    if (!said.empty()) return said;
  }
  if (crashed_.load(kRelaxed))
    return "a thread that is not inside a function of the plugin's table";
  return inside();
}

std::string Board::address_of_crash() const {
  constexpr std::uintptr_t kNearNull = 4096;
  if (!crashed_.load(kRelaxed) || !crash_.has_address) return {};
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), " at 0x%zx", std::size_t{crash_.address});
  std::string said = text.data();
  if (on_a_name()) return said + ", where the communicator's name was while init ran,";
  if (without_code()) return said + ", where its code was while the plugin was loaded,";
  if (crash_.address < kNearNull) return said + ", which is near NULL,";
  return said;
}

std::vector<Finding> Board::findings() const {
  std::vector<Finding> all;
  for (const Text& text : texts_) {
    if (text.ready.load(std::memory_order_acquire)) {
      all.push_back({text.rule.data(), text.text.data()});
    }
  }
  return all;
}

}  // namespace ringmain::nccl_conformance
