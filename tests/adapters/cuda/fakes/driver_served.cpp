// The middle of the fake libcuda.so.1: every call's entry and return, and what a test tells.
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tests/adapters/cuda/fakes/driver_world.hpp"
#include "tests/adapters/cuda/fakes/log.hpp"

namespace ringmain::fake {
namespace {

struct Failure {
  int result = 0;
  unsigned times = 0;
};
using Middle = std::pair<void (*)(void*), void*>;

struct Told {
  std::mutex mutex;
  std::map<std::string, Failure> failures;
  std::map<std::string, Middle> middles;
  std::atomic<bool> any{false};  // of the two: nearly always none, then no lock is taken
  std::atomic<const Onlooker*> onlooker{nullptr};
  std::atomic<std::uint64_t> served{0}, forbidden{0};
  std::atomic<const char*> forbidden_name{nullptr};
  std::atomic<std::uint64_t> in_host{0};
  std::atomic<int (*)(const char*, void*)> script{nullptr};
  std::atomic<void*> script_with{nullptr};
};

Told& told() {
  static auto* const told = new Told;
  return *told;
}

thread_local Call* innermost = nullptr;

/// In a callback for a call these may be made; CUPTI's guide names them.
bool is_allowed(const Row& row, const Onlooker& onlooker) {
  const std::string_view name = row.function;
  return onlooker.in_callback_of_calls() &&
         (name == "cudaDeviceSynchronize" || name == "cudaStreamSynchronize" ||
          name == "cudaStreamSynchronize_ptsz" || name == "cuCtxSynchronize" ||
          name == "cuCtxSynchronize_v2" || name == "cuStreamSynchronize" ||
          name == "cuStreamSynchronize_ptsz" || name == "cuDriverGetVersion");
}

void see_context(Call& call) {
  const Context* now = current_context();
  call.context = const_cast<Context*>(now);
  call.context_uid = now == nullptr ? 0 : now->uid;
}

}  // namespace

void raise_notice(int domain, std::uint32_t cbid, void* context, void* stream) {
  if (const Onlooker* on = told().onlooker) on->notice(domain, cbid, context, stream);
}

}  // namespace ringmain::fake

using namespace ringmain::fake;  // NOLINT: the functions below are at C's level

extern "C" {

void fake_cuda_look_on(const Onlooker* onlooker) {
  told().onlooker = onlooker;
}

void fake_cuda_enter(Call* call) {
  call->outer = innermost;
  call->depth = innermost == nullptr ? 1 : innermost->depth + 1;
  innermost = call;
  call->order = ++told().served;
  call->correlation = call->outer == nullptr ? call->order : call->outer->correlation;
  see_context(*call);
  const Onlooker* on = told().onlooker;
  if (on == nullptr || !call->told) return;
  if (on->in_callback() && !is_allowed(call->row, *on)) {
    call->forbidden = true;
    ++told().forbidden;
    told().forbidden_name = call->row.function;
  }
  on->enter(*call);
}

int fake_cuda_instead(const Call* call) {
  Told& t = told();
  if (in_host_function()) {
    ++t.in_host;
    return CUDA_ERROR_NOT_PERMITTED;
  }
  if (auto* const script = t.script.load()) {
    if (const int result = script(call->row.function, t.script_with); result >= 0) return result;
  }
  if (!t.any) return -1;
  Middle middle{nullptr, nullptr};
  int result = -1;
  {
    const std::lock_guard lock(t.mutex);
    if (const auto found = t.middles.find(call->row.function); found != t.middles.end()) {
      middle = found->second;
      t.middles.erase(found);
    }
    const auto found = t.failures.find(call->row.function);
    if (found != t.failures.end() && found->second.times > 0) {
      --found->second.times;
      result = found->second.result;
    }
  }
  if (middle.first != nullptr) middle.first(middle.second);
  return result;
}

void fake_cuda_leave(Call* call, int result) {
  see_context(*call);
  if (const Onlooker* on = told().onlooker; on != nullptr && call->told) on->leave(*call, result);
  write_line(*call, result);
  // What the inner call did is what the outer one did.
  if (call->outer != nullptr && call->deed.said) call->outer->deed = call->deed;
  innermost = call->outer;
}

void fake_cuda_fail(const char* name, int result, unsigned times) {
  const std::lock_guard lock(told().mutex);
  told().failures[name] = {result, times};
  told().any = true;
}

void fake_cuda_during(const char* name, void (*middle)(void*), void* with) {
  const std::lock_guard lock(told().mutex);
  told().middles[name] = {middle, with};
  told().any = true;
}

void fake_cuda_script(int (*at)(const char*, void*), void* with) {
  told().script_with = with;
  told().script = at;
}

std::uint64_t fake_cuda_in_host_functions() {
  return told().in_host;
}

int fake_cuda_raise(int domain, std::uint32_t cbid, const char* name, const void* params,
                    std::size_t params_bytes, int result) {
  Call call{{domain, cbid, name, name}, params, params_bytes};
  fake_cuda_enter(&call);
  const int instead = fake_cuda_instead(&call);
  if (instead >= 0) result = instead;
  fake_cuda_leave(&call, result);
  return result;
}

void fake_cuda_raise_resource(std::uint32_t cbid, void* context, void* stream) {
  raise_notice(kResources, cbid, context, stream);
}

std::uint64_t fake_cuda_served() {
  return told().served;
}
std::uint64_t fake_cuda_forbidden() {
  return told().forbidden;
}
const char* fake_cuda_forbidden_name() {
  return told().forbidden_name;
}
std::uint32_t fake_cuda_context_uid() {
  const Context* now = current_context();
  return now == nullptr ? 0 : now->uid;
}

void fake_cuda_reset() {
  Told& t = told();
  const std::lock_guard lock(t.mutex);
  t.failures.clear();
  t.middles.clear();
  t.any = false;
  t.script = nullptr;
  t.served = t.forbidden = t.in_host = 0;
  t.forbidden_name = nullptr;
  const std::lock_guard of_world(world().mutex);
  world().attributes.clear();
  works().held.clear();
  works().stray_writes = 0;
  advance();
}

}  // extern "C"
