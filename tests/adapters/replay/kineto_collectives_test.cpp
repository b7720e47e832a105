// Do annotation, operator, launch and kernel of one collective find each other?
#include <gtest/gtest.h>

#include "adapters/sources/replay/kineto_terms.hpp"

#include "tests/adapters/replay/kineto_support.hpp"

namespace ringmain::replay {
namespace {

using collective::Completed;
using collective::Issued;
using collective::Started;

std::string slice(const std::string& category, const std::string& name, int tid, int ts, int dur,
                  const std::string& args = "") {
  return R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","pid":1,"tid":)" +
         std::to_string(tid) + R"(,"ts":)" + std::to_string(ts) + R"(,"dur":)" +
         std::to_string(dur) + R"(,"args":{)" + args + "}}";
}
std::string annotation(const std::string& name, int tid, int ts, int dur,
                       const std::string& args = "") {
  return slice("user_annotation", name, tid, ts, dur, args);
}
std::string comms(int tid, int ts, int dur, const std::string& args) {
  return slice("cpu_op", "record_param_comms", tid, ts, dur, args);
}
std::string launch(int correlation, int tid, int ts) {
  return slice("cuda_runtime", "cudaLaunchKernelExC", tid, ts, 1,
               R"("cbid":430,"correlation":)" + std::to_string(correlation));
}
std::string kernel(int correlation, int ts, int dur, const std::string& args = "",
                   const std::string& name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)") {
  return R"({"ph":"X","cat":"kernel","name":")" + name + R"(","pid":0,"tid":30,"ts":)" +
         std::to_string(ts) + R"(,"dur":)" + std::to_string(dur) +
         R"(,"args":{"device":0,"stream":30,"correlation":)" + std::to_string(correlation) +
         (args.empty() ? "" : "," + args) + "}}";
}

constexpr const char* kAllReduce =
    R"("Collective name":"allreduce","In msg nelems":1000,"Out msg nelems":1000,"Group size":2,)"
    R"("dtype":"Float","Process Group Name":"0","Seq":41,"Rank":1,"Is asynchronized op":true)";

TEST(KinetoCollectivesTest, AnAnnotationIssuesAndItsKernelStartsAndCompletes) {
  const Mapping mapping = map_text(object_trace({
      kernel(5, 130, 40),  // before its launch in the file
      annotation("nccl:all_reduce", 10, 102, 20),
      comms(10, 100, 30, kAllReduce),
      launch(5, 10, 110),
  }));
  const auto issued = mapping.all<Issued>();
  ASSERT_EQ(issued.size(), 1u);
  EXPECT_EQ(issued[0].op.view(), "all_reduce");
  EXPECT_EQ(issued[0].backend.view(), "nccl");
  EXPECT_EQ(issued[0].group.view(), "0");
  EXPECT_EQ(issued[0].dtype.view(), "Float");
  EXPECT_EQ(issued[0].bytes, 4000u);
  EXPECT_EQ(issued[0].in_elements, 1000u);
  EXPECT_EQ(issued[0].sequence, 41u);
  EXPECT_EQ(issued[0].group_size, 2);
  EXPECT_EQ(issued[0].rank, 1);
  EXPECT_EQ(issued[0].peer, -1);
  EXPECT_TRUE(issued[0].asynchronous);
  EXPECT_EQ(issued[0].thread, 10);
  EXPECT_EQ(issued[0].duration_ns, 20000);
  EXPECT_EQ(issued[0].stream, 30u);
  EXPECT_EQ(issued[0].correlation, 5u);
  EXPECT_EQ(mapping.times<Issued>(), std::vector<std::int64_t>{102000});

  const auto started = mapping.all<Started>();
  ASSERT_EQ(started.size(), 1u);
  EXPECT_EQ(started[0].op_id, issued[0].op_id);
  EXPECT_EQ(started[0].queued_ns, 28000);
  EXPECT_EQ(started[0].bytes, 4000u);
  EXPECT_EQ(started[0].device, 0);
  EXPECT_EQ(mapping.times<Started>(), std::vector<std::int64_t>{130000});

  const auto completed = mapping.all<Completed>();
  ASSERT_EQ(completed.size(), 1u);
  EXPECT_EQ(completed[0].op_id, issued[0].op_id);
  EXPECT_EQ(completed[0].duration_ns, 40000);
  EXPECT_EQ(completed[0].queued_ns, 28000);
  EXPECT_EQ(completed[0].kernels, 1u);
  EXPECT_EQ(mapping.times<Completed>(), std::vector<std::int64_t>{170000});
  EXPECT_EQ(mapping.on("replay.slice"), 2u) << "the launch and record_param_comms";
}

TEST(KinetoCollectivesTest, TheOperatorMayStandBesideTheAnnotation) {
  for (const int ts : {90, 160}) {  // before, after
    const Mapping mapping = map_text(
        object_trace({annotation("nccl:all_reduce", 10, 100, 50), comms(10, ts, 5, kAllReduce),
                      comms(11, 100, 50, R"("Collective name":"broadcast","In msg nelems":7)")}));
    ASSERT_EQ(mapping.on("collective.issued"), 1u);
    EXPECT_EQ(mapping.all<Issued>()[0].bytes, 4000u) << ts;
  }
}

TEST(KinetoCollectivesTest, AnOperatorBesideBelongsToOneAnnotationOnly) {
  const Mapping mapping = map_text(
      object_trace({annotation("nccl:all_reduce", 10, 100, 50),
                    annotation("nccl:broadcast", 10, 200, 50), comms(10, 99, 60, kAllReduce)}));
  const auto issued = mapping.all<Issued>();
  ASSERT_EQ(issued.size(), 2u);
  EXPECT_EQ(issued[0].bytes, 4000u);
  EXPECT_EQ(issued[1].bytes, 0u);
}

TEST(KinetoCollectivesTest, AnOperatorOfAnotherThreadGivesNoMetadata) {
  for (const int ts : {90, 102, 151}) {
    for (const int thread : {9, 11}) {
      const Mapping mapping = map_text(object_trace(
          {annotation("nccl:all_reduce", 10, 100, 50), comms(thread, ts, 5, kAllReduce)}));
      ASSERT_EQ(mapping.on("collective.issued"), 1u);
      EXPECT_EQ(mapping.all<Issued>()[0].bytes, 0u) << ts << " in thread " << thread;
    }
  }
}

TEST(KinetoCollectivesTest, AWaitIsNoCollectiveAndGivesNoMetadata) {
  const std::string wait =
      R"("Collective name":"wait","dtype":"Byte","In msg nelems":9,"Group size":1)";
  const Mapping mapping =
      map_text(object_trace({annotation("nccl:all_reduce", 10, 100, 50), comms(10, 155, 5, wait)}));
  ASSERT_EQ(mapping.on("collective.issued"), 1u);
  EXPECT_EQ(mapping.all<Issued>()[0].in_elements, 0u);
}

TEST(KinetoCollectivesTest, WithoutAnnotationsEachOperatorThatIsNoWaitIssues) {
  const Mapping mapping = map_text(object_trace({
      comms(10, 100, 30, kAllReduce),
      comms(10, 140, 30, R"("Collective name":"wait")"),
      comms(10, 180, 30,
            R"("Collective name":"_allgather_base","In msg nelems":4,"Out msg nelems":8,)"
            R"("dtype":"BFloat16")"),
      launch(5, 10, 110),
      kernel(5, 120, 10),
  }));
  const auto issued = mapping.all<Issued>();
  ASSERT_EQ(issued.size(), 2u);
  EXPECT_EQ(issued[0].op.view(), "all_reduce");
  EXPECT_EQ(issued[1].op.view(), "all_gather");
  EXPECT_EQ(issued[1].bytes, 16u);
  ASSERT_EQ(mapping.on("collective.completed"), 1u);
  EXPECT_EQ(mapping.all<Completed>()[0].op_id, issued[0].op_id);
  EXPECT_EQ(mapping.on("replay.slice"), 2u) << "the wait and the launch";
}

TEST(KinetoCollectivesTest, SeveralKernelsOfOneCollectiveStartAndCompleteItOnce) {
  const Mapping mapping = map_text(object_trace({
      annotation("nccl:all_to_all", 10, 100, 50),
      launch(5, 10, 110),
      launch(6, 10, 120),
      launch(7, 10, 130),
      kernel(6, 220, 300),
      kernel(5, 210, 40),
      kernel(7, 260, 20),
  }));
  ASSERT_EQ(mapping.on("collective.started"), 1u);
  ASSERT_EQ(mapping.on("collective.completed"), 1u);
  EXPECT_EQ(mapping.times<Started>(), std::vector<std::int64_t>{210000});
  EXPECT_EQ(mapping.times<Completed>(), std::vector<std::int64_t>{520000});
  EXPECT_EQ(mapping.all<Completed>()[0].kernels, 3u);
  EXPECT_EQ(mapping.all<Completed>()[0].duration_ns, 310000);
  EXPECT_EQ(mapping.on("replay.slice"), 3u + 1u) << "the launches, and the kernel between";
}

TEST(KinetoCollectivesTest, AKernelBelongsToTheInnermostAnnotation) {
  const Mapping mapping = map_text(object_trace({
      annotation("nccl:coalesced", 10, 100, 100),
      annotation("nccl:broadcast", 10, 120, 20),
      annotation("nccl:reduce", 10, 150, 20),
      launch(5, 10, 160),
      kernel(5, 300, 10),
      launch(6, 10, 125),
      kernel(6, 320, 10),
      launch(7, 10, 180),
      kernel(7, 340, 10),
  }));
  const auto completed = mapping.all<Completed>();
  ASSERT_EQ(completed.size(), 3u);
  EXPECT_EQ(completed[0].op.view(), "reduce");
  EXPECT_EQ(completed[1].op.view(), "broadcast");
  EXPECT_EQ(completed[2].op.view(), "coalesced");
}

TEST(KinetoCollectivesTest, AKernelWithoutItsLaunchIsFoundByExternalId) {
  const Mapping mapping =
      map_text(object_trace({comms(10, 100, 30, std::string(kAllReduce) + R"(,"External id":77)"),
                             annotation("nccl:all_reduce", 10, 102, 20, R"("External id":78)"),
                             kernel(5, 130, 10, R"("External id":77)")}));
  ASSERT_EQ(mapping.on("collective.completed"), 1u);
  EXPECT_EQ(mapping.all<Completed>()[0].op_id, mapping.all<Issued>()[0].op_id);
}

TEST(KinetoCollectivesTest, AnExternalIdThatRepeatsTheCorrelationMeansNothing) {
  const Mapping mapping =
      map_text(object_trace({annotation("nccl:broadcast", 10, 500, 20, R"("External id":6)"),
                             kernel(6, 530, 10, R"("External id":6)")}));
  ASSERT_EQ(mapping.on("collective.completed"), 1u);
  EXPECT_NE(mapping.all<Completed>()[0].op_id, mapping.all<Issued>()[0].op_id);
}

TEST(KinetoCollectivesTest, AKernelThatNobodyAskedForStartsAndCompletesOnItsOwn) {
  const Mapping mapping =
      map_text(object_trace({annotation("nccl:broadcast", 10, 500, 20), kernel(5, 130, 10),
                             kernel(6, 150, 10, R"("Collective name":"allgather","External id":6)",
                                    "NCCLKernel_Generic_4")}));
  EXPECT_EQ(mapping.on("collective.issued"), 1u);
  const auto completed = mapping.all<Completed>();
  ASSERT_EQ(completed.size(), 2u);
  EXPECT_EQ(completed[0].op.view(), "all_reduce") << "from the kernel's name";
  EXPECT_EQ(completed[1].op.view(), "all_gather") << "from its arguments";
  EXPECT_NE(completed[0].op_id, completed[1].op_id);
  EXPECT_NE(completed[0].op_id, mapping.all<Issued>()[0].op_id);
  EXPECT_EQ(completed[0].queued_ns, 0);
}

TEST(KinetoCollectivesTest, AnnotationsOnTheGpuAreSlices) {
  const Mapping mapping =
      map_text(object_trace({slice("gpu_user_annotation", "nccl:all_reduce", 30, 100, 10),
                             annotation("nccl:all_reduce", 10, 90, 5)}));
  EXPECT_EQ(mapping.on("collective.issued"), 1u);
  EXPECT_EQ(mapping.on("replay.slice"), 1u);
}

TEST(KinetoCollectivesTest, GlooIsIssuedAtTheStartAndCompletedAtTheEnd) {
  const Mapping mapping = map_text(object_trace(
      {annotation("gloo:all_reduce", 10, 100, 25)},
      R"(,"distributedInfo":{"backend":"gloo","rank":1,"world_size":2,"pg_count":1})"));
  ASSERT_EQ(mapping.on("collective.issued"), 1u);
  ASSERT_EQ(mapping.on("collective.completed"), 1u);
  EXPECT_EQ(mapping.on("collective.started"), 0u);
  const Issued issued = mapping.all<Issued>()[0];
  EXPECT_EQ(issued.backend.view(), "gloo");
  EXPECT_EQ(issued.source.view(), "replay");
  EXPECT_EQ(issued.rank, 1);
  EXPECT_EQ(issued.group_size, 2);
  EXPECT_EQ(mapping.times<Issued>(), std::vector<std::int64_t>{100000});
  EXPECT_EQ(mapping.times<Completed>(), std::vector<std::int64_t>{125000});
  EXPECT_EQ(mapping.all<Completed>()[0].op_id, issued.op_id);
  EXPECT_EQ(mapping.all<Completed>()[0].duration_ns, 25000);
}

TEST(KinetoCollectivesTest, PointToPointOperationsNameTheOtherRank) {
  const Mapping mapping = map_text(object_trace(
      {annotation("nccl:send 0->3", 10, 100, 10), annotation("nccl:recv 0<-2", 10, 200, 10),
       annotation("nccl:broadcast", 10, 300, 10),
       comms(10, 299, 12, R"("Collective name":"broadcast","Rank":5)")}));
  const auto issued = mapping.all<Issued>();
  ASSERT_EQ(issued.size(), 3u);
  EXPECT_EQ(issued[0].op.view(), "send");
  EXPECT_EQ(issued[0].rank, 0);
  EXPECT_EQ(issued[0].peer, 3);
  EXPECT_EQ(issued[1].op.view(), "recv");
  EXPECT_EQ(issued[1].peer, 2);
  EXPECT_EQ(issued[2].peer, 5) << "a rooted collective's peer is its root";
}

TEST(KinetoCollectivesTest, OperationsAreNumberedInTheOrderOfAsking) {
  const Mapping mapping = map_text(
      object_trace({annotation("nccl:reduce", 10, 300, 10), annotation("nccl:gather", 11, 100, 10),
                    annotation("nccl:scatter", 10, 200, 10)}));
  const auto issued = mapping.all<Issued>();
  ASSERT_EQ(issued.size(), 3u);
  EXPECT_EQ(issued[0].op_id, 3u);
  EXPECT_EQ(issued[1].op_id, 1u);
  EXPECT_EQ(issued[2].op_id, 2u);
}

TEST(KinetoTermsTest, ShapesAndTypesGiveBytes) {
  EXPECT_EQ(elements_of_dims("[[19618307]]"), 19618307u);
  EXPECT_EQ(elements_of_dims("[[2, 3], [], [[4], [5, 6]]]"), 6u + 4u + 30u);
  EXPECT_EQ(elements_of_dims("[[]]"), 0u);
  EXPECT_EQ(elements_of_dims("[[0, 5]]"), 0u);
  EXPECT_LE(elements_of_dims("[[99999999999999999999, 9], [9999999999999999, 9999999999999999]]"),
            std::uint64_t{1} << 53);
  EXPECT_EQ(first_string(R"(["", "float"])"), "float");
  EXPECT_EQ(first_string(R"(["", ")"), "");
  EXPECT_EQ(dtype_bytes("c10::Half"), 2u);
  EXPECT_EQ(dtype_bytes("Float8_e4m3fn"), 1u);
  EXPECT_EQ(dtype_bytes("Mystery"), 0u);
}

}  // namespace
}  // namespace ringmain::replay
