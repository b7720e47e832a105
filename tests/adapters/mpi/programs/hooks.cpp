// Hooks on communicators of MPI, for hooks.c, which loads it.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "bus/bus.hpp"

#include "adapters/sources/collective/communicator.hpp"

namespace {

using namespace ringmain;
namespace collective = ringmain::collective;
using collective::OpName;

// Never destroyed: hooks are called to the end of the program.
std::atomic<int> pre{0}, post{0}, refused{0}, threw{0}, ended{0}, failed{0};
std::atomic<int> veto{-1};  // which OpName
std::atomic<std::uint64_t> last_pre{0}, last_post{0}, last_end{0};

Verdict asked(const collective::PreHookArgs& args) {
  ++pre;
  last_pre = args.op_id;
  if (static_cast<int>(args.name) == veto) return Verdict::veto(Name("the test said no"));
  return Verdict::allow();
}

}  // namespace

/// 1: there is such a communicator, and all four hooks are on it.
extern "C" int hooks_on(const char* group) {
  const auto comm = collective::Communicator::find(Bus::process(), group);
  if (!comm) return 0;
  auto before = comm.pre_hook(asked);
  auto after = comm.post_hook([](const collective::PostHookArgs& args) {
    ++post;
    last_post = args.op_id;
    if (args.outcome == collective::Outcome::refused) ++refused;
    if (args.outcome == collective::Outcome::threw) ++threw;
  });
  auto end = comm.completion_hook([](const collective::CompletionHookArgs& args) {
    ++(args.completed != nullptr ? ended : failed);
    last_end = args.op_id;
  });
  auto abort = comm.abort_hook([](const collective::AbortHookArgs& args) {
    const auto reason = args.reason.view();
    std::fprintf(stderr, "abort hook: %.*s\n", static_cast<int>(reason.size()), reason.data());
  });
  if (!before || !after || !end || !abort) return 0;
  before.value().release();
  after.value().release();
  end.value().release();
  abort.value().release();
  return 1;
}
extern "C" void hooks_veto(const char* op) {
  veto = -1;
  for (int i = 0; op != nullptr && i < static_cast<int>(collective::kOpNames); ++i) {
    if (to_string(static_cast<OpName>(i)) == std::string_view(op)) veto = i;
  }
}
extern "C" int hooks_seen(const char* what) {
  const std::string_view wanted(what);
  if (wanted == "pre") return pre;
  if (wanted == "post") return post;
  if (wanted == "refused") return refused;
  if (wanted == "threw") return threw;
  if (wanted == "ended") return ended;
  if (wanted == "failed") return failed;
  if (wanted == "one id") return last_pre == last_post && last_pre == last_end && last_pre != 0;
  return -1;
}
