// Does each record become the event that it stands for?
#include <gtest/gtest.h>

#include "tests/adapters/replay/kineto_support.hpp"

namespace ringmain::replay {
namespace {

std::string call(const std::string& name, const std::string& args = "",
                 const std::string& category = "cuda_runtime") {
  return R"({"ph":"X","cat":")" + category + R"(","name":")" + name +
         R"(","pid":100,"tid":101,"ts":10,"dur":2.5,"args":{)" + args + "}}";
}

/// The channel on which a single record is heard.
std::string channel_of(const std::string& record) {
  const Mapping mapping = map_text(object_trace({record}));
  EXPECT_FALSE(mapping.error) << mapping.error->message;
  EXPECT_EQ(mapping.channels.size(), 1u) << record;
  return mapping.channels.empty() ? "" : mapping.channels.begin()->first;
}

TEST(KinetoMapTest, EachOfTheTenKindsHasItsChannel) {
  struct Case {
    const char* api;
    const char* channel;
  };
  const Case cases[] = {
      {"cudaEventCreate", "cuda.event_creation"},
      {"cudaEventCreateWithFlags", "cuda.event_creation"},
      {"cudaEventDestroy", "cuda.event_deletion"},
      {"cudaEventRecord", "cuda.event_record"},
      {"cudaEventRecordWithFlags_v11010", "cuda.event_record"},
      {"cudaEventRecord_ptsz_v7000", "cuda.event_record"},
      {"cudaStreamWaitEvent", "cuda.event_wait"},
      {"cudaMalloc", "cuda.memory_allocation"},
      {"cudaMallocAsync_ptsz", "cuda.memory_allocation"},
      {"cudaHostAlloc", "cuda.memory_allocation"},
      {"cudaFree", "cuda.memory_deallocation"},
      {"cudaFreeHost", "cuda.memory_deallocation"},
      {"cudaStreamCreateWithPriority", "cuda.stream_creation"},
      {"cudaDeviceSynchronize", "cuda.device_synchronization"},
      {"cudaStreamSynchronize", "cuda.stream_synchronization"},
      {"cudaEventSynchronize", "cuda.event_synchronization"},
      {"hipMalloc", "cuda.memory_allocation"},
      {"hipHostMalloc", "cuda.memory_allocation"},
      {"hipStreamWaitEvent", "cuda.event_wait"},
      {"hipDeviceSynchronize", "cuda.device_synchronization"},
      {"cudaStreamDestroy", "replay.slice"},
      {"cudaEventQuery", "replay.slice"},
      {"cudaEventElapsedTime", "replay.slice"},
      {"cudaMemcpyAsync", "replay.slice"},
      {"cudaLaunchKernel", "replay.slice"},
      {"cudaMallocSomethingNew", "replay.slice"},
  };
  for (const Case& one : cases) EXPECT_EQ(channel_of(call(one.api)), one.channel) << one.api;
}

TEST(KinetoMapTest, DriverCallsAndOlderCategoriesCountToo) {
  EXPECT_EQ(channel_of(call("cuMemAlloc_v2", "", "cuda_driver")), "cuda.memory_allocation");
  EXPECT_EQ(channel_of(call("cuCtxSynchronize", "", "cuda_driver")), "cuda.device_synchronization");
  EXPECT_EQ(channel_of(call("cudaMalloc", "", "Runtime")), "cuda.memory_allocation");
  EXPECT_EQ(channel_of(call("cudaMalloc", "", "cpu_op")), "replay.slice") << "no call";
}

TEST(KinetoMapTest, ACallWithoutANameIsKnownByItsNumber) {
  EXPECT_EQ(channel_of(call("INVALID", R"("cbid": 373)")), "cuda.memory_allocation");
  EXPECT_EQ(channel_of(call("INVALID", R"("cbid": 800)", "cuda_driver")),
            "cuda.device_synchronization");
  EXPECT_EQ(channel_of(call("INVALID", R"("cbid": 211)")), "replay.slice");
  EXPECT_EQ(channel_of(call("hipEventQuery", R"("cbid": 135)")), "replay.slice") << "HIP's numbers";
}

TEST(KinetoMapTest, ACallKeepsWhatItsRecordSays) {
  const Mapping mapping =
      map_text(object_trace({call("cudaMalloc", R"("cbid":20,"correlation":9)")}));
  const auto events = mapping.all<cuda::MemoryAllocation>();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].api.view(), "cudaMalloc");
  EXPECT_EQ(events[0].correlation, 9u);
  EXPECT_EQ(events[0].cbid, 20);
  EXPECT_EQ(events[0].duration_ns, 2500);
  EXPECT_EQ(events[0].thread, 101);
  EXPECT_EQ(events[0].phase, cuda::Phase::instant);
  EXPECT_EQ(events[0].layer, cuda::Layer::runtime);
  EXPECT_EQ(events[0].memory, cuda::MemoryClass::device);
  EXPECT_EQ(events[0].result, cuda::kNoResult) << "a trace does not hold results";
  EXPECT_EQ(mapping.times<cuda::MemoryAllocation>(), std::vector<std::int64_t>{10000});
}

TEST(KinetoMapTest, ASynchronizationLearnsItsStreamFromTheGpuSide) {
  const Mapping mapping = map_text(object_trace({
      call("cudaStreamSynchronize", R"("correlation":15)"),
      call("cudaEventRecord", R"("correlation":16)"),
      call("cudaStreamWaitEvent", R"("correlation":17)"),
      call("cudaDeviceSynchronize", R"("correlation":18)"),
      R"({"ph":"X","cat":"cuda_sync","name":"Stream Sync","pid":1,"tid":7,"ts":11,"dur":1,"args":)"
      R"({"stream":7,"correlation":15,"device":1,"context":2}})",
      R"({"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":1,"tid":20,"ts":12,"dur":1,"args":)"
      R"({"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":16,"wait_on_cuda_event_id":4,)"
      R"("stream":20,"correlation":17,"device":1,"context":2}})",
      R"({"ph":"X","cat":"cuda_sync","name":"Context Sync","pid":1,"tid":-1,"ts":13,"dur":1,"args":)"
      R"({"stream":4294967295,"correlation":18,"device":1,"context":2}})",
  }));
  const auto syncs = mapping.all<cuda::StreamSynchronization>();
  ASSERT_EQ(syncs.size(), 1u);
  EXPECT_EQ(syncs[0].stream, 7u);
  EXPECT_EQ(syncs[0].device, 1);
  EXPECT_EQ(syncs[0].context, 2u);
  const auto recorded = mapping.all<cuda::EventRecord>();
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].event, 4u);
  EXPECT_EQ(recorded[0].stream, 7u);
  const auto waits = mapping.all<cuda::EventWait>();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].event, 4u);
  EXPECT_EQ(waits[0].stream, 20u);
  EXPECT_EQ(mapping.all<cuda::DeviceSynchronization>().at(0).device, 1);
  const auto slices = mapping.all<Slice>();
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[0].stream, 7u);
  EXPECT_EQ(slices[2].stream, kNoStream) << "2^32 - 1 is no stream";
}

TEST(KinetoMapTest, GpuWorkIsASliceWithItsStream) {
  const Mapping mapping = map_text(object_trace(
      {R"({"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":3,"tid":7,"ts":1,"dur":2,"args":)"
       R"({"stream":7,"device":3,"correlation":14,"External id":12,"bytes":92928}})",
       R"({"ph":"X","cat":"kernel","name":"k","pid":4,"tid":9,"ts":1,"dur":2,"args":{}})"}));
  const auto slices = mapping.all<Slice>();
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].name.view(), "Memcpy HtoD");
  EXPECT_EQ(slices[0].category.view(), "gpu_memcpy");
  EXPECT_EQ(slices[0].stream, 7u);
  EXPECT_EQ(slices[0].device, 3);
  EXPECT_EQ(slices[0].bytes, 92928u);
  EXPECT_EQ(slices[0].correlation, 14u);
  EXPECT_EQ(slices[0].external_id, 12u);
  EXPECT_EQ(slices[0].duration_ns, 2000);
  EXPECT_EQ(slices[1].device, 4) << "Kineto makes the device the process";
  EXPECT_EQ(slices[1].stream, kNoStream);
}

TEST(KinetoMapTest, EveryOtherPhaseHasItsShape) {
  const Mapping mapping = map_text(object_trace({
      R"({"ph":"B","name":"b","pid":1,"tid":1,"ts":1})",
      R"({"ph":"E","name":"b","pid":1,"tid":1,"ts":2})",
      R"({"ph":"b","name":"async","id":"0x10","pid":1,"tid":1,"ts":3})",
      R"({"ph":"e","name":"async","id":16,"pid":1,"tid":1,"ts":4})",
      R"({"ph":"i","s":"g","name":"mark","pid":1,"tid":1,"ts":5})",
      R"({"ph":"R","name":"unloadEventStart","pid":1,"tid":1,"ts":5})",
      R"({"ph":"s","id":7,"cat":"ac2g","name":"ac2g","pid":1,"tid":1,"ts":6})",
      R"({"ph":"t","id":7,"cat":"ac2g","name":"ac2g","pid":1,"tid":1,"ts":7})",
      R"({"ph":"f","id":7,"bp":"e","cat":"ac2g","name":"ac2g","pid":1,"tid":1,"ts":8})",
      R"({"ph":"s","id":"local","name":"word","pid":1,"tid":1,"ts":8})",
      R"({"ph":"f","id":"local","name":"word","pid":1,"tid":1,"ts":9})",
      R"({"ph":"C","name":"memory","pid":1,"tid":1,"ts":9,"args":{"free":1.5,"used":-2,"note":"x"}})",
      R"({"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"main"}})",
      R"({"ph":"M","name":"process_sort_index","pid":1,"tid":0,"ts":1,"args":{"sort_index":5}})",
  }));
  ASSERT_FALSE(mapping.error) << mapping.error->message;
  const auto slices = mapping.all<Slice>();
  ASSERT_EQ(slices.size(), 4u);
  EXPECT_EQ(slices[0].phase, Slice::Phase::begin);
  EXPECT_EQ(slices[1].phase, Slice::Phase::end);
  EXPECT_EQ(slices[2].id, 16u);
  EXPECT_EQ(slices[3].id, 16u);
  const auto instants = mapping.all<Instant>();
  ASSERT_EQ(instants.size(), 2u);
  EXPECT_EQ(instants[1].letter.view(), "R");
  const auto flows = mapping.all<Flow>();
  ASSERT_EQ(flows.size(), 5u);
  EXPECT_EQ(flows[0].phase, Flow::Phase::start);
  EXPECT_EQ(flows[1].phase, Flow::Phase::step);
  EXPECT_EQ(flows[2].phase, Flow::Phase::end);
  EXPECT_EQ(flows[2].id, 7u);
  EXPECT_EQ(flows[3].id, flows[4].id);
  const auto counters = mapping.all<Counter>();
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[0].series.view(), "free");
  EXPECT_EQ(counters[0].value, 1.5);
  EXPECT_EQ(counters[1].value, -2);
  const auto metadata = mapping.all<Metadata>();
  ASSERT_EQ(metadata.size(), 2u);
  EXPECT_EQ(metadata[0].value.view(), "main");
  EXPECT_EQ(metadata[1].value.view(), "5");
}

TEST(KinetoMapTest, AllocatorRecordsKeepTheirBytes) {
  const Mapping mapping = map_text(object_trace(
      {R"({"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":1,"ts":1,"args":)"
       R"({"Device Type":1,"Device Id":2,"Addr":139926520725504,"Bytes":-512,)"
       R"("Total Allocated":1024,"Total Reserved":2048}})"}));
  const auto instants = mapping.all<Instant>();
  ASSERT_EQ(instants.size(), 1u);
  EXPECT_EQ(instants[0].bytes, -512);
  EXPECT_EQ(instants[0].address, 139926520725504u);
  EXPECT_EQ(instants[0].allocated_bytes, 1024);
  EXPECT_EQ(instants[0].reserved_bytes, 2048);
  EXPECT_EQ(instants[0].device, 2);
}

TEST(KinetoMapTest, TheTimeBaseIsAddedWhereverItStands) {
  const char* const slice = R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":2.5,"dur":1})";
  const char* const late = R"({"ph":"M","name":"process_name","pid":1,"args":{"name":"p"}})";
  const Mapping mapping =
      map_text(object_trace({late, slice}, R"(, "baseTimeNanoseconds": 1700000000000000000)"));
  EXPECT_EQ(mapping.times<Slice>(), std::vector<std::int64_t>{1700000000000002500});
  EXPECT_EQ(mapping.times<Metadata>(), std::vector<std::int64_t>{1700000000000002500})
      << "metadata without a time is said when the trace begins";
}

TEST(KinetoMapTest, ABaseThatLeavesNoRoomSkipsTheRecord) {
  const char* const slice =
      R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":4000000000000000,"dur":1})";
  const Mapping mapping =
      map_text(object_trace({slice}, R"(, "baseTimeNanoseconds": 9000000000000000000)"));
  EXPECT_FALSE(mapping.error);
  EXPECT_EQ(mapping.counts.skipped[static_cast<std::size_t>(Skip::bad_timestamp)], 1u);
}

TEST(KinetoLanesTest, ThreadsAreLanesAndAGpusStreamsAreOne) {
  const auto slice = [](const char* category, const char* pid, const char* tid) {
    return std::string(R"({"ph":"X","name":"a","ts":1,"cat":")") + category + R"(","pid":)" + pid +
           R"(,"tid":)" + tid + "}";
  };
  const Mapping mapping = map_text(object_trace({
      slice("cpu_op", "100", "101"),                                             // 0
      R"({"ph":"f","id":1,"name":"ac2g","cat":"ac2g","pid":0,"tid":7,"ts":1})",  // 1: before 2
      slice("kernel", "0", "7"),                                                 // 2
      slice("gpu_memcpy", "0", "20"),                                            // 3
      slice("kernel", "1", "7"),                                                 // 4
      slice("cpu_op", "100", "102"),                                             // 5
      slice("cpu_op", "\"main\"", "\"worker\""),                                 // 6
      slice("Trace", "\"Spans\"", "\"PyTorch Profiler\""),                       // 7
      R"({"ph":"M","name":"thread_name","pid":0,"tid":7,"ts":1,"args":{"name":"stream 7"}})",  // 8
      R"({"ph":"M","name":"process_name","pid":100,"tid":0,"ts":1,"args":{"name":"python"}})"  // 9
  }));
  const auto lane = [&](std::size_t event) { return mapping.events.at(event).lane; };
  ASSERT_EQ(mapping.lanes.size(), 6u);
  EXPECT_EQ(mapping.lanes[lane(2)].kind, KinetoLane::Kind::device);
  EXPECT_EQ(mapping.lanes[lane(2)].device, 0);
  EXPECT_EQ(mapping.lanes[lane(2)].sharing, 2u);
  EXPECT_EQ(lane(1), lane(2));
  EXPECT_EQ(lane(3), lane(2));
  EXPECT_EQ(lane(8), lane(2));
  EXPECT_NE(lane(4), lane(2));
  EXPECT_EQ(mapping.lanes[lane(4)].device, 1);
  EXPECT_NE(lane(0), lane(5));
  EXPECT_EQ(mapping.lanes[lane(6)].process.view(), "main");
  EXPECT_EQ(mapping.lanes[lane(6)].thread.view(), "worker");
  EXPECT_EQ(lane(7), 0);
  EXPECT_EQ(lane(9), 0);
  EXPECT_EQ(mapping.lanes[0].kind, KinetoLane::Kind::trace);
  EXPECT_EQ(mapping.crowded, 0u);
}

TEST(KinetoLanesTest, MoreThreadsThanLanesShareThemAndAreCounted) {
  std::vector<std::string> records;
  for (int round = 0; round < 2; ++round) {
    for (int thread = 0; thread < 200; ++thread) {
      records.push_back(R"({"ph":"X","name":"a","pid":1,"ts":1,"tid":)" + std::to_string(thread) +
                        "}");
    }
  }
  const Mapping mapping = map_text(object_trace(records));
  EXPECT_EQ(mapping.lanes.size(), KinetoLanes::kLanesMax);
  EXPECT_EQ(mapping.crowded, 200u - (KinetoLanes::kLanesMax - 1));
  std::uint64_t sharing = 0;
  for (const KinetoLane& lane : mapping.lanes) sharing += lane.sharing;
  EXPECT_EQ(sharing, 200u);
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(mapping.events.at(i).lane, mapping.events.at(i + 200).lane)
        << "a thread has one lane";
    EXPECT_NE(mapping.events.at(i).lane, 0);
  }
}

TEST(KinetoTraceTest, ATraceCanBeReplayedAgain) {
  const InMemory file(gzip(object_trace({call("cudaMalloc"), call("cudaFree")})));
  auto trace = KinetoTrace::open(file.path());
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace.value().records(), 2u);
  KinetoMapped mapped;
  for (int loop = 0; loop < 3; ++loop) {
    std::uint64_t events = 0;
    while (trace.value().next(mapped).value()) ++events;
    EXPECT_EQ(events, 2u);
    EXPECT_EQ(trace.value().counts().read, 2u);
    EXPECT_EQ(trace.value().position(), trace.value().size());
    trace.value().rewind();
  }
}

}  // namespace
}  // namespace ringmain::replay
