// The rules that a plugin is held to, by name: what a finding names, and what --help lists.
#pragma once

namespace ringmain::nccl_conformance {

struct Rule {
  const char* name;
  const char* says;
};

namespace rules {
// Loading.
inline constexpr char kOpens[] = "load.opens";
// init
inline constexpr char kInit[] = "init.succeeds";
inline constexpr char kInitConcurrent[] = "init.concurrent";
inline constexpr char kName[] = "init.name";
inline constexpr char kNoName[] = "init.no_name";
inline constexpr char kMask[] = "init.mask";
// startEvent
inline constexpr char kStart[] = "start.succeeds";
inline constexpr char kWritten[] = "start.handle_written";
inline constexpr char kDistinct[] = "start.handle_distinct";
inline constexpr char kKept[] = "start.descriptor_kept";
inline constexpr char kUnknownType[] = "start.unknown_type";
inline constexpr char kNullParent[] = "start.null_parent";
inline constexpr char kDeadParent[] = "start.dead_parent";
inline constexpr char kForeignContext[] = "start.foreign_context";
inline constexpr char kForeignParent[] = "start.foreign_parent";
inline constexpr char kFull[] = "start.full";
inline constexpr char kRestarted[] = "start.restarted";
// recordEventState
inline constexpr char kRecord[] = "record.succeeds";
inline constexpr char kNullArgs[] = "record.null_args";
inline constexpr char kUnknownState[] = "record.unknown_state";
inline constexpr char kRepeated[] = "record.repeated";
inline constexpr char kDirection[] = "record.direction";
inline constexpr char kRecordDead[] = "record.dead_handle";
// stopEvent
inline constexpr char kStop[] = "stop.succeeds";
inline constexpr char kStopDead[] = "stop.dead_handle";
// all of them
inline constexpr char kReturns[] = "call.returns";
inline constexpr char kSurvives[] = "call.survives";
// finalize
inline constexpr char kFinalize[] = "finalize.succeeds";
inline constexpr char kOpen[] = "finalize.open_events";
inline constexpr char kTombstone[] = "finalize.context_used_later";
// the mask
inline constexpr char kMaskChanges[] = "mask.changes";
// unloading
inline constexpr char kAgain[] = "unload.again";
inline constexpr char kThreads[] = "unload.threads";
inline constexpr char kMemory[] = "unload.memory";
inline constexpr char kFiles[] = "unload.files";
}  // namespace rules

/// All of them, in the order of --help; the last has a null name.
extern const Rule kRules[];

}  // namespace ringmain::nccl_conformance
