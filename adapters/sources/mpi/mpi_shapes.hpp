// How much does a call move, and with which rank? What this rank gives and what it gets, counted
// from the parameters that MPI reads on this rank; the others may have any value.
#pragma once
#include <algorithm>
#include <cstdint>

#include "adapters/sources/mpi/mpi_kinds.hpp"

namespace ringmain::mpi::shapes {

/// One direction.
struct Side {
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  Name dtype{};
};
struct Shape {
  Group* group = nullptr;
  Side give{};
  Side get{};
  int peer = -1;
  bool collective = true;
};

inline Side side(std::int64_t elements, MPI_Datatype type) noexcept {
  const TypeFacts facts = type_of(type);
  const auto n = static_cast<std::uint64_t>(std::max<std::int64_t>(elements, 0));
  return {n, n * facts.bytes, facts.name};
}
inline std::int64_t sum(const int* counts, int n) noexcept {
  std::int64_t all = 0;
  for (int i = 0; counts != nullptr && i < n; ++i) all += counts[i];
  return all;
}
inline Side side(const int* counts, const TypeList& types, int n) noexcept {
  Side all;
  for (int i = 0; i < n; ++i) {
    const Side one = side(counts[i], types[i]);
    all.elements += one.elements;
    all.bytes += one.bytes;
    if (one.dtype != Name()) all.dtype = one.dtype;
  }
  return all;
}
/// With how many ranks it exchanges: in an intercommunicator, with those of the other group.
inline int others(const Group& group) noexcept {
  return group.remote != 0 ? group.remote : group.size;
}
/// Is this rank the root? In an intercommunicator the call says so itself.
inline bool is_root(const Group& group, int root) noexcept {
  return group.remote != 0 ? root == MPI_ROOT : root == group.rank;
}
/// MPI_ROOT, MPI_PROC_NULL and MPI_ANY_SOURCE are no rank.
inline int rank_or_none(int rank) noexcept {
  return rank < 0 ? -1 : rank;
}

inline Shape nothing(MPI_Comm comm) noexcept {
  return {&group_of(comm)};
}
inline Shape broadcast(const void*, int n, MPI_Datatype type, int root, MPI_Comm comm) noexcept {
  Shape shape{&group_of(comm), {}, {}, rank_or_none(root)};
  if (root != MPI_PROC_NULL) (is_root(*shape.group, root) ? shape.give : shape.get) = side(n, type);
  return shape;
}

/// All give to the root.
inline Shape to_root(const void* give, Side given, Side gotten, int root, Group& group) noexcept {
  Shape shape{&group, {}, {}, rank_or_none(root)};
  const bool between = group.remote != 0;
  if (is_root(group, root)) shape.get = gotten;
  if (between ? root >= 0 : give != MPI_IN_PLACE) shape.give = given;
  return shape;
}
inline Shape gather(const void* give, int n, MPI_Datatype type, const void*, int m,
                    MPI_Datatype into, int root, MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  const bool gets = is_root(group, root);
  const bool gives = give != MPI_IN_PLACE && (group.remote == 0 || root >= 0);
  return to_root(give, gives ? side(n, type) : Side{},
                 gets ? side(std::int64_t{m} * others(group), into) : Side{}, root, group);
}
inline Shape gather_v(const void* give, int n, MPI_Datatype type, const void*, const int* counts,
                      Unread, MPI_Datatype into, int root, MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  const bool gets = is_root(group, root);
  const bool gives = give != MPI_IN_PLACE && (group.remote == 0 || root >= 0);
  return to_root(give, gives ? side(n, type) : Side{},
                 gets ? side(sum(counts, others(group)), into) : Side{}, root, group);
}
inline Shape reduce(const void* give, const void*, int n, MPI_Datatype type, Unread, int root,
                    MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  if (root == MPI_PROC_NULL) return {&group};
  const Side all = side(n, type);
  // In place the root gives too, from its receive buffer.
  return to_root(is_root(group, root) ? nullptr : give, all, all, root, group);
}

/// The root gives to all.
inline Shape scatter(const void*, int n, MPI_Datatype type, const void* get, int m,
                     MPI_Datatype into, int root, MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  Shape shape{&group, {}, {}, rank_or_none(root)};
  if (is_root(group, root)) shape.give = side(std::int64_t{n} * others(group), type);
  if (get != MPI_IN_PLACE && (group.remote == 0 || root >= 0)) shape.get = side(m, into);
  return shape;
}
inline Shape scatter_v(const void*, const int* counts, Unread, MPI_Datatype type, const void* get,
                       int m, MPI_Datatype into, int root, MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  Shape shape{&group, {}, {}, rank_or_none(root)};
  if (is_root(group, root)) shape.give = side(sum(counts, others(group)), type);
  if (get != MPI_IN_PLACE && (group.remote == 0 || root >= 0)) shape.get = side(m, into);
  return shape;
}

/// All to all. In place, the receive buffer has what is given.
inline Shape all_gather(const void* give, int n, MPI_Datatype type, const void*, int m,
                        MPI_Datatype into, MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  return {&group, give == MPI_IN_PLACE ? side(m, into) : side(n, type),
          side(std::int64_t{m} * others(group), into)};
}
inline Shape all_gather_v(const void* give, int n, MPI_Datatype type, const void*,
                          const int* counts, Unread, MPI_Datatype into, MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  const bool in_place = give == MPI_IN_PLACE && group.rank >= 0;
  return {&group, in_place ? side(counts[group.rank], into) : side(n, type),
          side(sum(counts, others(group)), into)};
}
inline Shape all_to_all(const void* give, int n, MPI_Datatype type, const void*, int m,
                        MPI_Datatype into, MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  const Side get = side(std::int64_t{m} * others(group), into);
  return {&group, give == MPI_IN_PLACE ? get : side(std::int64_t{n} * others(group), type), get};
}
inline Shape all_to_all_v(const void* give, const int* counts, Unread, MPI_Datatype type,
                          const void*, const int* gotten, Unread, MPI_Datatype into,
                          MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  const Side get = side(sum(gotten, others(group)), into);
  return {&group, give == MPI_IN_PLACE ? get : side(sum(counts, others(group)), type), get};
}
inline Shape all_to_all_w(const void* give, const int* counts, Unread, const TypeList& types,
                          const void*, const int* gotten, Unread, const TypeList& into,
                          MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  const Side get = side(gotten, into, others(group));
  return {&group, give == MPI_IN_PLACE ? get : side(counts, types, others(group)), get};
}
inline Shape same(const void*, const void*, int n, MPI_Datatype type, Unread,
                  MPI_Comm comm) noexcept {
  return {&group_of(comm), side(n, type), side(n, type)};
}
inline Shape reduce_scatter(const void*, const void*, int n, MPI_Datatype type, Unread,
                            MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  return {&group, side(std::int64_t{n} * group.size, type), side(n, type)};
}
inline Shape reduce_scatter_v(const void*, const void*, const int* counts, MPI_Datatype type,
                              Unread, MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  return {&group, side(sum(counts, group.size), type),
          group.rank < 0 ? Side{} : side(counts[group.rank], type)};
}

/// With the neighbours in the communicator's topology.
inline Shape neighbor_all_gather(const void*, int n, MPI_Datatype type, const void*, int m,
                                 MPI_Datatype into, MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  return {&group, side(n, type), side(std::int64_t{m} * group.sources, into)};
}
inline Shape neighbor_all_gather_v(const void*, int n, MPI_Datatype type, const void*,
                                   const int* counts, Unread, MPI_Datatype into,
                                   MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  return {&group, side(n, type), side(sum(counts, group.sources), into)};
}
inline Shape neighbor_all_to_all(const void*, int n, MPI_Datatype type, const void*, int m,
                                 MPI_Datatype into, MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  return {&group, side(std::int64_t{n} * group.destinations, type),
          side(std::int64_t{m} * group.sources, into)};
}
inline Shape neighbor_all_to_all_v(const void*, const int* counts, Unread, MPI_Datatype type,
                                   const void*, const int* gotten, Unread, MPI_Datatype into,
                                   MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  return {&group, side(sum(counts, group.destinations), type),
          side(sum(gotten, group.sources), into)};
}
inline Shape neighbor_all_to_all_w(const void*, const int* counts, Unread, const TypeList& types,
                                   const void*, const int* gotten, Unread, const TypeList& into,
                                   MPI_Comm comm) noexcept {
  Group& group = group_of(comm);
  return {&group, side(counts, types, group.destinations), side(gotten, into, group.sources)};
}

/// Between two ranks. With MPI_PROC_NULL nothing is moved.
inline Shape send(const void*, int n, MPI_Datatype type, int peer, Unread, MPI_Comm comm) noexcept {
  return {
      &group_of(comm), side(peer == MPI_PROC_NULL ? 0 : n, type), {}, rank_or_none(peer), false};
}
inline Shape receive(const void*, int n, MPI_Datatype type, int peer, Unread, MPI_Comm comm,
                     Unread = {}) noexcept {
  return {
      &group_of(comm), {}, side(peer == MPI_PROC_NULL ? 0 : n, type), rank_or_none(peer), false};
}
/// A message does not say from which communicator it was taken.
inline Shape receive_matched(const void*, int n, MPI_Datatype type, Unread, Unread = {}) noexcept {
  return {&group_of(MPI_COMM_NULL), {}, side(n, type), -1, false};
}
inline Shape send_receive(const void*, int n, MPI_Datatype type, int to, Unread, const void*, int m,
                          MPI_Datatype into, int from, Unread, MPI_Comm comm, Unread) noexcept {
  return {&group_of(comm), side(to == MPI_PROC_NULL ? 0 : n, type),
          side(from == MPI_PROC_NULL ? 0 : m, into), rank_or_none(to), false};
}
inline Shape send_receive_replace(const void*, int n, MPI_Datatype type, int to, Unread, int from,
                                  Unread, MPI_Comm comm, Unread) noexcept {
  return {&group_of(comm), side(to == MPI_PROC_NULL ? 0 : n, type),
          side(from == MPI_PROC_NULL ? 0 : n, type), rank_or_none(to), false};
}

}  // namespace ringmain::mpi::shapes
