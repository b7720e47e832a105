// A source over the libraries that stand in for NVIDIA's, and all that it tells, as text.
//
// Compiled with NVIDIA's header before the wrapper's, with what stands in for it, and with neither.
#pragma once
#if !defined(TRACED_BARE)
#include "tests/adapters/cuda/fakes/cuda_types.hpp"
#endif

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "adapters/formats/json_line.hpp"
#include "adapters/sources/cuda/cuda_source.hpp"

#include "tests/adapters/cuda/fakes/fake_cuda.h"
#include "tests/adapters/cuda/traced/each_call.hpp"

namespace ringmain::cuda {

using tests::each_call;
using tests::EachCall;
using tests::straight;
using tests::Things;

/// An event's fields as text, by name.
using Fields = std::map<std::string, std::string>;
struct Told {
  std::string channel;
  Fields fields;
};

/// Only what is told on the kinds' own channels, one after the other.
inline std::vector<Told> of_kinds(std::vector<Told> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Told& a, const Told& b) { return a.channel < b.channel; });
  std::erase_if(all, [](const Told& told) {
    return told.channel == "cuda.source" || told.channel == "cuda.call_begin";
  });
  return all;
}

class TracedFixture : public testing::Test {
 protected:
  TracedFixture() {
    fake_cuda_reset();
    fake_cupti_reset();
    fake_cupti_version(130500);  // which has all that is wrapped
    (void)straight("cudaSetDevice", 0);
    heard_ = bus.subscribe("cuda.*", [this](const EventView& event) {
      Told told{std::string(event.channel()), {}};
      for (const FieldSchema& field : event.schema().fields) {
        std::string& text = told.fields[std::string(field.name)];
        formats::append_json_field(text, field, event.bytes().data());
      }
      told_.push_back(std::move(told));
    });
    tests::prepare(things);
  }
  ~TracedFixture() override {
    EXPECT_EQ(fake_cuda_forbidden(), 0) << fake_cuda_forbidden_name();
    EXPECT_EQ(fake_cupti_overlaps(), 0);
  }
  /// Listens to each kind, so that its channel is there.
  void listen_to_all() {
    keep_.emplace_back(bus.channel<EventCreation>().subscribe([](const auto&) {}));
    keep_.emplace_back(bus.channel<EventDeletion>().subscribe([](const auto&) {}));
    keep_.emplace_back(bus.channel<EventRecord>().subscribe([](const auto&) {}));
    keep_.emplace_back(bus.channel<EventWait>().subscribe([](const auto&) {}));
    keep_.emplace_back(bus.channel<MemoryAllocation>().subscribe([](const auto&) {}));
    keep_.emplace_back(bus.channel<MemoryDeallocation>().subscribe([](const auto&) {}));
    keep_.emplace_back(bus.channel<StreamCreation>().subscribe([](const auto&) {}));
    keep_.emplace_back(bus.channel<StreamDeletion>().subscribe([](const auto&) {}));
    keep_.emplace_back(bus.channel<DeviceSynchronization>().subscribe([](const auto&) {}));
    keep_.emplace_back(bus.channel<StreamSynchronization>().subscribe([](const auto&) {}));
    keep_.emplace_back(bus.channel<EventSynchronization>().subscribe([](const auto&) {}));
  }
  Source attached(const Options& options = {}) {
    auto made = Source::attach(bus, options);
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(made).value() : Source();
  }
  void tell() { ASSERT_TRUE(bus.wait_told(std::chrono::minutes(10))); }
  /// What was told since the last time.
  std::vector<Told> heard() {
    bus.deliver();
    return of_kinds(std::exchange(told_, {}));
  }
  /// In the middle of the next call of this name.
  void during(const char* name, std::function<void()> middle) {
    middle_ = std::move(middle);
    fake_cuda_during(
        name, [](void* of) { (*static_cast<std::function<void()>*>(of))(); }, &middle_);
  }
  std::size_t count(const std::vector<Told>& all, std::string_view channel) {
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const Told& told) { return told.channel == channel; }));
  }
  std::vector<Told> all_calls(bool wrapped) {
    Things of = things;
    {
      Source source = attached();
      (void)heard();
      for (const EachCall& each : each_call()) EXPECT_EQ(each.make(of, wrapped), 0) << each.cbid;
    }
    tests::clear_away(of);
    return heard();
  }

  TestBus bus;
  Things things;

 private:
  std::vector<Told> told_;
  std::vector<Subscription> keep_;
  Subscription heard_;
  std::function<void()> middle_;
};

}  // namespace ringmain::cuda
