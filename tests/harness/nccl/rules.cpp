#include "tests/harness/nccl/rules.hpp"

namespace ringmain::nccl_conformance {

const Rule kRules[] = {
    {rules::kOpens, "the library opens with RTLD_NOW | RTLD_LOCAL and exports a whole table"},
    {rules::kInit, "init returns 0 for each communicator; an error unloads under live ones"},
    {rules::kInitConcurrent, "communicators that init at once each get what one alone gets"},
    {rules::kName, "the communicator's name is copied: it may be gone after init"},
    {rules::kNoName, "the communicator's name may be NULL"},
    {rules::kMask, "the mask has bits of the plugin's ABI version only"},
    {rules::kStart, "startEvent returns 0, also where it drops the event"},
    {rules::kWritten, "startEvent writes *eHandle on every path; NULL where it drops the event"},
    {rules::kDistinct, "events that are open at the same time have different handles"},
    {rules::kKept, "no pointer to a descriptor or to a state's arguments is kept"},
    {rules::kUnknownType, "a type of event that the plugin does not know is dropped"},
    {rules::kNullParent, "a parent may be NULL: its start was dropped, or the mask was clear"},
    {rules::kDeadParent, "a parent may have stopped long ago: graphs, non-blocking communicators"},
    {rules::kForeignContext, "the context of another process's event (PXN) is not followed"},
    {rules::kForeignParent, "the parent of another process's event (PXN) is not followed"},
    {rules::kFull, "more open events than a plugin has room for: NULL handles, no error"},
    {rules::kRestarted, "a step that starts again takes the place of the one before"},
    {rules::kRecord, "recordEventState returns 0"},
    {rules::kNullArgs, "the arguments of GroupApi's states are NULL"},
    {rules::kUnknownState, "a state that the plugin does not know is ignored"},
    {rules::kRepeated, "a state may come any number of times"},
    {rules::kDirection, "steps of what is said to receive may have a send's states: CollNet"},
    {rules::kRecordDead, "a state of an event that stopped is ignored"},
    {rules::kStop, "stopEvent returns 0"},
    {rules::kStopDead, "a handle may be stopped again, long after: NCCL does not clear all"},
    {rules::kReturns, "each function returns without waiting for another call"},
    {rules::kSurvives, "the process lives on"},
    {rules::kFinalize, "finalize returns 0, on any thread"},
    {rules::kOpen, "events that never stop are given up by finalize"},
    {rules::kTombstone, "events may come with a context that was finalized: shared proxies"},
    {rules::kMaskChanges, "events begun before the mask changed are stopped after it"},
    {rules::kAgain, "init, finalize and unloading may repeat, with and without an unmapping"},
    {rules::kThreads, "no thread of the plugin's runs on after it was unmapped"},
    {rules::kMemory, "loading and unloading again and again takes no more memory"},
    {rules::kFiles, "loading and unloading again and again leaves no open file"},
    {nullptr, nullptr}};

}  // namespace ringmain::nccl_conformance
