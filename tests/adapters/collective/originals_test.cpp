// Which faults do the hooks of torchcomms and c10d have that ours do not? Each is a program that
// shows it on a model of the original, and runs on a communicator without it.
#include "tests/adapters/collective/originals.hpp"

#include <functional>
#include <ostream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/adapters/collective/originals_coming_and_going.hpp"
#include "tests/adapters/collective/originals_operations.hpp"
#include "tests/adapters/collective/originals_ours.hpp"

namespace ringmain::tests::originals {
namespace {

/// A fault, and whose it is.
struct Row {
  std::string name, fact;
  std::function<Saw()> on_original, on_ours;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.fact;
}
template <class Program, class Original>
Row row(std::string name) {
  return {std::move(name), Program::fact, [] { return Program::template on<Original>(); },
          [] { return Program::template on<Ours>(); }};
}

class OriginalsTest : public testing::TestWithParam<Row> {};

TEST_P(OriginalsTest, TheOriginalHasTheFaultAndOursDoesNot) {
  const Saw original = GetParam().on_original(), ours = GetParam().on_ours();
  EXPECT_TRUE(original.fault) << "the model does not show it: " << GetParam().fact;
  EXPECT_FALSE(ours.fault) << GetParam().fact;
  EXPECT_GT(original.calls, 0);
  EXPECT_GT(ours.calls, 0);
}

const Row kRows[] = {
    // torchcomms
    row<RemovesItself, Torchcomms>("TorchcommsAHookThatRemovesItself"),
    row<RemovesAnother, Torchcomms>("TorchcommsAHookThatRemovesAnother"),
    row<RegistersInside, Torchcomms>("TorchcommsAHookThatRegistersOne"),
    row<RegistersElsewhere, Torchcomms>("TorchcommsRegisteredByAnotherThread"),
    row<RemovesElsewhere, Torchcomms>("TorchcommsRemovedByAnotherThread"),
    row<RunsAfterRemoval, Torchcomms>("TorchcommsRunsAfterItsRemoval"),
    row<OutlivesItsHandle, Torchcomms>("TorchcommsOutlivesItsHandle"),
    row<SilentRemoval, Torchcomms>("TorchcommsRemovedInSilence"),
    row<NotInOrder, Torchcomms>("TorchcommsInNoOrder"),
    row<PartsHaveNone, Torchcomms>("TorchcommsPartsHaveNone"),
    row<ThrowingBackend, Torchcomms>("TorchcommsABackendThatThrows"),
    row<Vetoed, Torchcomms>("TorchcommsWhatIsRefused"),
    row<EmptySplit, Torchcomms>("TorchcommsAnEmptySplit"),
    row<ThrowingPost, Torchcomms>("TorchcommsAPostHookThatThrows"),
    row<ResetIds, Torchcomms>("TorchcommsIdsAreSetBack"),
    row<FinalizeId, Torchcomms>("TorchcommsFinalizeHasOneId"),
    row<Unhooked, Torchcomms>("TorchcommsOperationsWithoutHooks"),
    row<PostIsNoEnd, Torchcomms>("TorchcommsPostIsNoEnd"),
    row<EndHooksRace, Torchcomms>("TorchcommsEndHooksRace"),
    row<AbortsTwice, Torchcomms>("TorchcommsAbortsTwice"),
    row<AbortsInTurn, Torchcomms>("TorchcommsAbortsInTurn"),
    // c10d
    row<RemovesItself, C10d214>("C10dAHookThatRemovesItself"),
    row<RemovesItself, C10d215>("C10d215AHookThatRemovesItself"),
    row<RemovesAnother, C10d215>("C10d215AHookThatRemovesAnother"),
    row<RegistersInside, C10d214>("C10dAHookThatRegistersOne"),
    row<RegistersInside, C10d215>("C10d215AHookThatRegistersOne"),
    row<RegistersElsewhere, C10d214>("C10dRegisteredByAnotherThread"),
    row<RegistersElsewhere, C10d215>("C10d215RegisteredByAnotherThread"),
    row<RemovesElsewhere, C10d214>("C10dRemovedByAnotherThread"),
    row<RemovesElsewhere, C10d215>("C10d215RemovedByAnotherThread"),
    row<RunsAfterRemoval, C10d215>("C10d215RunsAfterItsRemoval"),
    row<OutlivesItsHandle, C10d215>("C10d215OutlivesItsHandle"),
    row<SilentRemoval, C10d215>("C10d215RemovedInSilence"),
    row<SameNumber, C10d214>("C10dTheSameNumberTwice"),
    row<SameNumber, C10d215>("C10d215TheSameNumberTwice"),
    row<NotInOrder, C10d214>("C10dInNoOrder"),
    row<NotInOrder, C10d215>("C10d215InOrderOfNumbers"),
    row<PartsHaveNone, C10d215>("C10d215PartsHaveNone"),
    row<ThrowingBackend, C10d215>("C10d215ABackendThatThrows"),
    row<Vetoed, C10d215>("C10d215WhatIsRefused"),
    row<ThrowingPost, C10d215>("C10d215APostHookThatThrows"),
    row<GroupsIds, C10d215>("C10d215IdsOfAGroup"),
    row<FailureIsNoEnd, C10d215>("C10d215AFailureIsNoEnd"),
    row<EndBeforePost, C10d215>("C10d215AnEndBeforeThePostHook"),
    row<AbortsTwice, C10d215>("C10d215AbortsTwice"),
    row<AbortsInTurn, C10d215>("C10d215AbortsInTurn"),
};

INSTANTIATE_TEST_SUITE_P(Faults, OriginalsTest, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace ringmain::tests::originals
