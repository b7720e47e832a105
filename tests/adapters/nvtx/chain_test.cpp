// Does an NVTX tool chained after us hear what it would hear alone, with its own handles?
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "events/nvtx.hpp"

#include "adapters/sources/nvtx/nvtx_source.hpp"

#include "tests/adapters/nvtx/fake_copy.hpp"

namespace ringmain::nvtx {
namespace {

using abi::EventAttributes;
using abi::Handle;
using abi::RangeId;
using Copy = FakeCopy<3>;

/// A tool that knows its own handles only. It does not implement marks of the default domain.
std::vector<std::string> told;
int its_domain = 0;
int its_string = 0;

std::string text_of(const EventAttributes* a) {
  if (a->message_type == abi::kRegistered) {
    return a->message.registered == &its_string ? "its string" : "no string of its own";
  }
  return a->message.ascii;
}
std::string of(Handle domain) {
  return domain == &its_domain ? "its domain: " : domain == nullptr ? "default: " : "foreign: ";
}

int attach_tool(abi::GetExportTable) {
  const auto put = [](auto id, auto* function) {
    Copy::at(id) = reinterpret_cast<abi::Function>(function);
  };
  put(
      abi::kRangePushA, +[](const char* text) {
        told.push_back(std::string("push ") + text);
        return 40;
      });
  put(
      abi::kRangePop, +[] {
        told.push_back("pop");
        return 41;
      });
  put(
      abi::kRangeStartA, +[](const char*) -> RangeId { return 4711; });
  put(
      abi::kRangeEnd, +[](RangeId id) { told.push_back("end " + std::to_string(id)); });
  put(
      abi::kDomainCreateA, +[](const char*) -> Handle { return &its_domain; });
  put(
      abi::kDomainRegisterStringA, +[](Handle domain, const char* text) -> Handle {
        told.push_back(of(domain) + "register " + text);
        return &its_string;
      });
  put(
      abi::kDomainRangePushEx, +[](Handle domain, const EventAttributes* a) {
        told.push_back(of(domain) + "push " + text_of(a));
        return 0;
      });
  put(
      abi::kDomainResourceCreate, +[](Handle domain, const abi::ResourceAttributes* a) -> Handle {
        told.push_back(of(domain) + (a->message.registered == &its_string ? "resource" : "?"));
        return nullptr;
      });
  put(
      abi::kSyncUserCreate, +[](Handle domain, const abi::SyncAttributes*) -> Handle {
        told.push_back(of(domain) + "sync");
        return nullptr;
      });
  return 1;
}

/// The source of the process goes on after a test.
Bus& bus() {
  static Bus& only = *new Bus(BusOptions{});
  return only;
}

TEST(NvtxChainTest, TheToolBehindUsHearsAllInItsOwnHandles) {
  Copy::fill();
  ASSERT_TRUE(attach(bus(), Copy::get, attach_tool));
  Copy::settle();
  std::vector<Range> heard;
  int marks = 0;
  const auto hearing =
      bus().channel<Range>().subscribe_inline([&heard](const Range& r) { heard.push_back(r); });
  const auto marking = bus().channel<Mark>().subscribe_inline([&marks](const Mark&) { ++marks; });

  EXPECT_EQ(Copy::call<int(const char*)>(abi::kRangePushA, "both"), 40);  // its answers count
  EXPECT_EQ(Copy::call<int()>(abi::kRangePop), 41);
  const auto id = Copy::call<RangeId(const char*)>(abi::kRangeStartA, "started");
  EXPECT_EQ(id, 4711u);
  Copy::call<void(RangeId)>(abi::kRangeEnd, id);
  const auto domain = Copy::call<Handle(const char*)>(abi::kDomainCreateA, "d");
  const auto string =
      Copy::call<Handle(Handle, const char*)>(abi::kDomainRegisterStringA, domain, "text");
  EventAttributes given{};
  given.bytes = sizeof given;
  given.message_type = abi::kRegistered;
  given.message.registered = string;
  Copy::call<int(Handle, const EventAttributes*)>(abi::kDomainRangePushEx, domain, &given);
  abi::ResourceAttributes resource{};
  resource.bytes = sizeof resource;
  resource.message_type = abi::kRegistered;
  resource.message.registered = string;
  Copy::call<Handle(Handle, abi::ResourceAttributes*)>(abi::kDomainResourceCreate, domain,
                                                       &resource);
  abi::SyncAttributes sync{};
  sync.bytes = sizeof sync;
  reinterpret_cast<Handle (*)(Handle, const abi::SyncAttributes*)>(Copy::at(abi::kSyncUserCreate))(
      domain, &sync);
  Copy::call<void(const char*)>(abi::kMarkA, "ours alone");

  EXPECT_EQ(told, (std::vector<std::string>{
                      "push both", "pop", "end 4711", "its domain: register text",
                      "its domain: push its string", "its domain: resource", "its domain: sync"}));
  ASSERT_EQ(heard.size(), 5u);
  EXPECT_EQ(heard[2].id, 4711u);
  EXPECT_EQ(heard[3].id, 4711u);
  EXPECT_EQ(heard[4].message.view(), "text");
  EXPECT_EQ(heard[4].domain.view(), "d");
  EXPECT_EQ(marks, 1);
}

TEST(NvtxChainTest, AToolThatDoesNotStartIsTakenOutAgain) {
  using Other = FakeCopy<4>;
  Other::fill();
  const auto fails = [](abi::GetExportTable) {
    for (auto id : {abi::kRangePushA, abi::kNameCategoryA}) Other::at(id) = [] { FAIL(); };
    Other::at(abi::kSyncUserCreate) = [] { FAIL(); };
    return 0;
  };
  ASSERT_TRUE(attach(bus(), Other::get, +fails));
  EXPECT_EQ(Other::at(abi::kSyncUserCreate), &loads_us);
  EXPECT_NE(Other::at(abi::kNameCategoryA), &loads_us);
}

}  // namespace
}  // namespace ringmain::nvtx
