// How is a struct of CUPTI's filled so that each field which is read can be told from every other?
//
// The struct lies in memory of exactly its size, so that AddressSanitizer sees whoever reads
// beyond.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "events/terms/cuda_call_table.hpp"

#include "adapters/sources/cuda/cuda_arguments.hpp"

namespace ringmain::cuda {

/// A call's struct, and what must be read of it.
struct Filling {
  Arguments before, after;  // at the entry, and after success
  std::uint64_t fresh = 0;  // of the values, each of which is another one
  std::vector<std::unique_ptr<unsigned char[]>> answers;
  std::vector<void*> streams;  // where in the struct streams are given

  /// Puts another value there, and returns it.
  template <class Field>
  std::uint64_t fill(Field& field) {
    const std::uint64_t value = 0x8182838485868788 + 0x0101010101010101 * fresh++;
    std::memcpy(&field, &value, sizeof field);
    return sizeof field == 4 ? static_cast<std::uint32_t>(value) : value;
  }
  /// Lets the struct point at an answer, and returns that.
  template <class Field>
  std::uint64_t answer(Field*& field) {
    auto& place = answers.emplace_back(new unsigned char[sizeof(Field)]);
    Field made;
    const std::uint64_t value = fill(made);
    std::memcpy(place.get(), &made, sizeof made);
    field = reinterpret_cast<Field*>(place.get());  // NOLINT: aligned by new
    return value;
  }
  template <class Member>
  void expect(Member Arguments::*member, std::uint64_t value) {
    before.*member = after.*member = static_cast<Member>(value);
  }
};

// What a member of a struct is.
template <class M>
auto given(M member, std::uint64_t Arguments::*argument) {
  return [=](auto& params, Filling& filling) {
    filling.expect(argument, filling.fill(params.*member));
  };
}
template <class M>
auto in(M member) {
  return given(member, &Arguments::handle);
}
template <class M>
auto bytes(M member) {
  return given(member, &Arguments::bytes);
}
template <class M>
auto graph(M member) {
  return given(member, &Arguments::graph);
}
template <class M>
auto stream(M member) {
  return [=](auto& params, Filling& filling) {
    filling.expect(&Arguments::stream, filling.fill(params.*member));
    filling.streams.push_back(&(params.*member));
  };
}
template <class M>
auto in_stream(M member) {
  return [=](auto& params, Filling& filling) {
    stream(member)(params, filling);
    filling.expect(&Arguments::handle, filling.before.stream);
  };
}
template <class M>
auto flags(M member) {
  return [=](auto& params, Filling& filling) {
    filling.expect(&Arguments::flags, filling.fill(params.*member));
  };
}
template <class M>
auto priority(M member) {
  return [=](auto& params, Filling& filling) {
    filling.expect(&Arguments::priority, filling.fill(params.*member));
  };
}
template <class M>
auto device(M member) {
  return [=](auto& params, Filling& filling) {
    filling.expect(&Arguments::device, filling.fill(params.*member));
  };
}
template <class M>
auto out(M member) {
  return [=](auto& params, Filling& filling) {
    filling.after.handle = filling.answer(params.*member);
  };
}
template <class M>
auto out_stream(M member) {
  return [=](auto& params, Filling& filling) {
    filling.after.handle = filling.after.stream = filling.answer(params.*member);
  };
}
template <class M>
auto out_graph(M member) {
  return
      [=](auto& params, Filling& filling) { filling.after.graph = filling.answer(params.*member); };
}

/// The calls that were compared.
inline std::set<std::string_view> checked;

inline void compare(const Arguments& read, const Arguments& expected) {
  EXPECT_EQ(read.handle, expected.handle);
  EXPECT_EQ(read.stream, expected.stream);
  EXPECT_EQ(read.bytes, expected.bytes);
  EXPECT_EQ(read.graph, expected.graph);
  EXPECT_EQ(read.flags, expected.flags);
  EXPECT_EQ(read.priority, expected.priority);
  EXPECT_EQ(read.device, expected.device);
}

template <class P, class... Members>
void check(std::string_view cupti, Members... members) {
  SCOPED_TRACE(cupti);
  const CallRow* row = nullptr;
  for (const CallRow& each : call_rows()) {
    if (each.cupti == cupti) row = &each;
  }
  ASSERT_NE(row, nullptr);
  checked.insert(row->cupti);
  static_assert(std::is_trivially_copyable_v<P>);
  const std::unique_ptr<P> params(new P);
  std::memset(params.get(), 0xee, sizeof(P));
  Filling filling;
  (members(*params, filling), ...);
  compare(read_arguments(*row, params.get(), false), filling.before);
  compare(read_arguments(*row, params.get(), true), filling.after);
  if (filling.streams.empty()) {
    EXPECT_FALSE(row->per_thread_stream);
    return;
  }
  for (void* place : filling.streams) std::memset(place, 0, sizeof(void*));
  const std::uint64_t meant = cupti.find("_ptsz") != std::string_view::npos ? 2 : 0;
  filling.after.stream = meant;
  if (filling.before.handle != 0 && row->shape == CallShape::stream) filling.after.handle = meant;
  compare(read_arguments(*row, params.get(), true), filling.after);
}

}  // namespace ringmain::cuda
