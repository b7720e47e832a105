// What must each operation give? Written out from its meaning, element by element: what a rank
// gives is known to all, so that each can say what it must get.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/collective/loopback.hpp"

namespace ringmain::tests {

namespace loopback = collective::loopback;

/// Element `i` of what `from` has for `to`: small whole numbers, whose sums are exact.
inline std::int64_t element(int from, int to, std::uint64_t i) {
  return (from * 7919 + to * 104'729 + static_cast<std::int64_t>(i % 100'003) * 31) % 1009 - 500;
}
inline std::vector<std::int64_t> elements(int from, int to, std::uint64_t n) {
  std::vector<std::int64_t> all(n);
  for (std::uint64_t i = 0; i < n; ++i) all[i] = element(from, to, i);
  return all;
}
inline std::vector<std::int64_t> summed(int ranks, int to, std::uint64_t n) {
  std::vector<std::int64_t> all(n);
  for (std::uint64_t i = 0; i < n; ++i) {
    for (int from = 0; from < ranks; ++from) all[i] += element(from, to, i);
  }
  return all;
}
inline std::vector<std::int64_t>& operator+=(std::vector<std::int64_t>& all,
                                             const std::vector<std::int64_t>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Tensors of one list, with their memory.
class Lists {
 public:
  explicit Lists(std::vector<std::vector<std::int64_t>> held) : held_(std::move(held)) {
    for (auto& one : held_) {
      sizes_.push_back(static_cast<std::int64_t>(one.size()));
    }
    for (std::size_t i = 0; i < held_.size(); ++i) {
      tensors_.push_back({.data = held_[i].data(),
                          .sizes = {&sizes_[i], 1},
                          .dtype = Name("int64"),
                          .bytes = held_[i].size() * 8});
    }
  }
  [[nodiscard]] collective::Tensors tensors() const { return tensors_; }
  [[nodiscard]] const std::vector<std::int64_t>& operator[](int at) const {
    return held_[static_cast<std::size_t>(at)];
  }

 private:
  std::vector<std::vector<std::int64_t>> held_;
  std::vector<std::int64_t> sizes_;
  std::vector<collective::Tensor> tensors_;
};

/// One call of one operation with `n` elements a piece, and a check of what it gave.
using Check = void (*)(const loopback::Rank& rank, std::uint64_t n, bool async_op);

inline void expect_completed(const loopback::Work& work) {
  EXPECT_EQ(work.wait(), loopback::State::completed) << work.reason();
}

inline void check_send_and_recv(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  const int me = rank.rank(), all = rank.size(), next = (me + 1) % all,
            before = (me + all - 1) % all;
  auto out = elements(me, next, n);
  std::vector<std::int64_t> in(n);
  const loopback::Values given(out), taken(in);
  const auto send = [&] {
    return rank.send({.tensor = given, .peer = next, .async_op = async_op});
  };
  const auto recv = [&] {
    return rank.recv({{.tensor = taken, .peer = before, .async_op = async_op}});
  };
  if (me == 0) {  // one of the circle begins to receive
    const auto first = recv();
    const auto second = send();
    expect_completed(first);
    expect_completed(second);
  } else {
    const auto first = send();
    const auto second = recv();
    expect_completed(first);
    expect_completed(second);
  }
  EXPECT_EQ(in, elements(before, me, n));
}

inline void check_broadcast(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  const int root = rank.size() - 1;
  auto data = rank.rank() == root ? elements(root, 0, n) : std::vector<std::int64_t>(n);
  const loopback::Values values(data);
  expect_completed(rank.broadcast({.tensor = values, .root = root, .async_op = async_op}));
  EXPECT_EQ(data, elements(root, 0, n));
}

inline void check_all_reduce(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  auto data = elements(rank.rank(), 3, n);
  const loopback::Values values(data);
  expect_completed(rank.all_reduce({.tensor = values, .async_op = async_op}));
  EXPECT_EQ(data, summed(rank.size(), 3, n));
}

inline void check_reduce(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  const int root = 1;
  auto data = elements(rank.rank(), 3, n);
  const loopback::Values values(data);
  expect_completed(rank.reduce({.tensor = values, .root = root, .async_op = async_op}));
  EXPECT_EQ(data, rank.rank() == root ? summed(rank.size(), 3, n) : elements(rank.rank(), 3, n));
}

inline std::vector<std::vector<std::int64_t>> empty_pieces(int ranks, std::uint64_t n) {
  return std::vector<std::vector<std::int64_t>>(static_cast<std::size_t>(ranks),
                                                std::vector<std::int64_t>(n));
}

inline void check_all_gather(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  auto mine = elements(rank.rank(), 0, n);
  const loopback::Values values(mine);
  const Lists out(empty_pieces(rank.size(), n));
  expect_completed(
      rank.all_gather({.input = values, .output = out.tensors(), .async_op = async_op}));
  for (int from = 0; from < rank.size(); ++from) EXPECT_EQ(out[from], elements(from, 0, n));
}

/// Rank r gives n + r elements.
inline void check_all_gather_v(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  const auto many = [n](int from) { return n + static_cast<std::uint64_t>(from); };
  auto mine = elements(rank.rank(), 0, many(rank.rank()));
  const loopback::Values values(mine);
  auto pieces = empty_pieces(rank.size(), 0);
  for (int from = 0; from < rank.size(); ++from)
    pieces[static_cast<std::size_t>(from)].resize(many(from));
  const Lists out(std::move(pieces));
  expect_completed(
      rank.all_gather_v({{.input = values, .output = out.tensors(), .async_op = async_op}}));
  for (int from = 0; from < rank.size(); ++from)
    EXPECT_EQ(out[from], elements(from, 0, many(from)));
}

inline void check_all_gather_single(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  const auto ranks = static_cast<std::uint64_t>(rank.size());
  std::vector<std::int64_t> all(n * ranks), wanted;
  // In place: a rank's own piece lies where it belongs.
  auto mine = elements(rank.rank(), 0, n);
  const std::uint64_t at = n * static_cast<std::uint64_t>(rank.rank());
  std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(at));
  const std::span<std::int64_t> piece(all.data() + at, n);
  const loopback::Values in(piece), out(all);
  expect_completed(rank.all_gather_single({.input = in, .output = out, .async_op = async_op}));
  for (int from = 0; from < rank.size(); ++from) wanted += elements(from, 0, n);
  EXPECT_EQ(all, wanted);
}

inline std::vector<std::vector<std::int64_t>> pieces_of(int from, int ranks, std::uint64_t n,
                                                        std::uint64_t more = 0) {
  std::vector<std::vector<std::int64_t>> all;
  for (int to = 0; to < ranks; ++to)
    all.push_back(elements(from, to, n + more * static_cast<std::uint64_t>(to)));
  return all;
}

inline void check_reduce_scatter(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  const Lists in(pieces_of(rank.rank(), rank.size(), n));
  std::vector<std::int64_t> mine(n);
  const loopback::Values out(mine);
  expect_completed(
      rank.reduce_scatter({.input = in.tensors(), .output = out, .async_op = async_op}));
  EXPECT_EQ(mine, summed(rank.size(), rank.rank(), n));
}

/// Rank r gets n + r elements.
inline void check_reduce_scatter_v(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  const Lists in(pieces_of(rank.rank(), rank.size(), n, 1));
  std::vector<std::int64_t> mine(n + static_cast<std::uint64_t>(rank.rank()));
  const loopback::Values out(mine);
  expect_completed(
      rank.reduce_scatter_v({{.input = in.tensors(), .output = out, .async_op = async_op}}));
  EXPECT_EQ(mine, summed(rank.size(), rank.rank(), mine.size()));
}

inline std::vector<std::int64_t> joined(const std::vector<std::vector<std::int64_t>>& pieces) {
  std::vector<std::int64_t> all;
  for (const auto& piece : pieces) all += piece;
  return all;
}

inline void check_reduce_scatter_single(const loopback::Rank& rank, std::uint64_t n,
                                        bool async_op) {
  auto whole = joined(pieces_of(rank.rank(), rank.size(), n));
  std::vector<std::int64_t> mine(n);
  const loopback::Values in(whole), out(mine);
  expect_completed(rank.reduce_scatter_single({.input = in, .output = out, .async_op = async_op}));
  EXPECT_EQ(mine, summed(rank.size(), rank.rank(), n));
}

inline void check_all_to_all(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  // Each pair has a size of its own: n + the sum of the two ranks.
  const auto me = static_cast<std::uint64_t>(rank.rank());
  const Lists in(pieces_of(rank.rank(), rank.size(), n + me, 1));
  auto pieces = empty_pieces(rank.size(), n + me);
  for (std::size_t from = 0; from < pieces.size(); ++from) pieces[from].resize(n + me + from);
  const Lists out(std::move(pieces));
  expect_completed(
      rank.all_to_all({.input = in.tensors(), .output = out.tensors(), .async_op = async_op}));
  for (int from = 0; from < rank.size(); ++from) {
    EXPECT_EQ(out[from], elements(from, rank.rank(), n + me + static_cast<std::uint64_t>(from)));
  }
}

inline std::vector<std::int64_t> from_each(const loopback::Rank& rank, std::uint64_t n) {
  std::vector<std::int64_t> all;
  for (int from = 0; from < rank.size(); ++from) all += elements(from, rank.rank(), n);
  return all;
}

inline void check_all_to_all_single(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  // In place: what is given is overwritten by what is got.
  auto data = joined(pieces_of(rank.rank(), rank.size(), n));
  const loopback::Values values(data);
  expect_completed(
      rank.all_to_all_single({.input = values, .output = values, .async_op = async_op}));
  EXPECT_EQ(data, from_each(rank, n));
}

/// Rank r gives n + p rows of two elements to rank p.
inline void check_all_to_all_v_single(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  const auto ranks = static_cast<std::uint64_t>(rank.size());
  std::vector<std::int64_t> data, wanted;
  std::vector<std::uint64_t> in_rows, out_rows;
  const std::uint64_t mine = n + static_cast<std::uint64_t>(rank.rank());
  for (std::uint64_t other = 0; other < ranks; ++other) {
    data += elements(rank.rank(), static_cast<int>(other), 2 * (n + other));
    in_rows.push_back(n + other);
    wanted += elements(static_cast<int>(other), rank.rank(), 2 * mine);
    out_rows.push_back(mine);
  }
  std::vector<std::int64_t> got(wanted.size());
  const std::int64_t in_sizes[] = {static_cast<std::int64_t>(data.size() / 2), 2};
  const std::int64_t out_sizes[] = {static_cast<std::int64_t>(got.size() / 2), 2};
  const Name type("int64");
  expect_completed(rank.all_to_all_v_single(
      {.input = {.data = data.data(), .sizes = in_sizes, .dtype = type, .bytes = data.size() * 8},
       .output = {.data = got.data(), .sizes = out_sizes, .dtype = type, .bytes = got.size() * 8},
       .input_split_sizes = in_rows,
       .output_split_sizes = out_rows,
       .async_op = async_op}));
  EXPECT_EQ(got, wanted);
}

inline void check_barrier(const loopback::Rank& rank, std::uint64_t, bool async_op) {
  expect_completed(rank.barrier({.async_op = async_op}));
}

inline void check_scatter(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  const int root = rank.size() - 1;
  const Lists in(rank.rank() == root ? pieces_of(root, rank.size(), n)
                                     : std::vector<std::vector<std::int64_t>>());
  std::vector<std::int64_t> mine(n);
  const loopback::Values out(mine);
  expect_completed(
      rank.scatter({.output = out, .input = in.tensors(), .root = root, .async_op = async_op}));
  EXPECT_EQ(mine, elements(root, rank.rank(), n));
}

inline void check_gather(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  const bool root = rank.rank() == 0;
  auto mine = elements(rank.rank(), 0, n);
  const loopback::Values in(mine);
  const Lists out(empty_pieces(root ? rank.size() : 0, n));
  expect_completed(
      rank.gather({.input = in, .output = out.tensors(), .root = 0, .async_op = async_op}));
  for (int from = 0; root && from < rank.size(); ++from) EXPECT_EQ(out[from], elements(from, 0, n));
}

inline void check_gather_single(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  const bool root = rank.rank() == 1;
  auto mine = elements(rank.rank(), rank.rank(), n);
  std::vector<std::int64_t> all(root ? n * static_cast<std::uint64_t>(rank.size()) : 0), wanted;
  const loopback::Values in(mine), out(all);
  expect_completed(
      rank.gather_single({.input = in, .output = out, .root = 1, .async_op = async_op}));
  for (int from = 0; root && from < rank.size(); ++from) wanted += elements(from, from, n);
  EXPECT_EQ(all, wanted);
}

/// Each with each, itself too.
inline void check_batch(const loopback::Rank& rank, std::uint64_t n, bool async_op) {
  const Lists out(pieces_of(rank.rank(), rank.size(), n)), in(empty_pieces(rank.size(), n));
  std::vector<loopback::OneToOne> parts;
  for (int peer = 0; peer < rank.size(); ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    parts.emplace_back(collective::Send{.tensor = out.tensors()[at], .peer = peer});
    parts.emplace_back(collective::Recv{{.tensor = in.tensors()[at], .peer = peer}});
  }
  expect_completed(rank.batch_op_issue(parts, async_op));
  for (int peer = 0; peer < rank.size(); ++peer)
    EXPECT_EQ(in[peer], elements(peer, rank.rank(), n));
}

struct NamedCheck {
  const char* name;
  Check check;
  int operations = 1;  // that each rank calls for
};
inline constexpr NamedCheck kChecks[] = {
    {"send_and_recv", check_send_and_recv, 2},
    {"broadcast", check_broadcast},
    {"all_reduce", check_all_reduce},
    {"reduce", check_reduce},
    {"all_gather", check_all_gather},
    {"all_gather_v", check_all_gather_v},
    {"all_gather_single", check_all_gather_single},
    {"reduce_scatter", check_reduce_scatter},
    {"reduce_scatter_v", check_reduce_scatter_v},
    {"reduce_scatter_single", check_reduce_scatter_single},
    {"all_to_all", check_all_to_all},
    {"all_to_all_single", check_all_to_all_single},
    {"all_to_all_v_single", check_all_to_all_v_single},
    {"barrier", check_barrier},
    {"scatter", check_scatter},
    {"gather", check_gather},
    {"gather_single", check_gather_single},
    {"batch_op_issue", check_batch},
};

}  // namespace ringmain::tests
