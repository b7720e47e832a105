// The source for callers of C: Python calls these functions by ctypes (bindings/python/ringmain/
// _cuda_library.py), and ringmain.torch finds by them the source that others have attached.
//
// A function that can fail gives a code, and a sentence of at most `why_bytes` with its zero, if
// `why` is not null. What else is null has its answer, too: a source that is null is detached.
// Threads: any; of one source one at a time for release(). Nothing is thrown.
#include <cstddef>
#include <cstdint>
#include <exception>

#include "adapters/launch/c_answers.hpp"
#include "adapters/sources/cuda/cuda_source.hpp"

using ringmain::Bus;
using ringmain::Error;
using ringmain::Result;
using ringmain::c_answers::say;
using ringmain::cuda::Options;
using ringmain::cuda::Source;

namespace {

constexpr int kNoSource = -1;
enum AnswerCode : int { kError = -1, kNo, kYes };

template <class F>
int answer_of(F ask, char* why, std::size_t why_bytes) noexcept {
  try {
    const Result<bool> answer = ask();
    if (answer) return answer.value() ? kYes : kNo;
    say(answer.error().message, why, why_bytes);
  } catch (const std::exception& thrown) {
    say(thrown.what(), why, why_bytes);
  }
  return kError;
}

/// A source that is null is as one that was never attached.
Source& source_of(void* source) noexcept {
  static Source none;
  return source == nullptr ? none : *static_cast<Source*>(source);
}

template <class F>
Result<bool> lend_to(const char* to, F lend) {
  if (to != nullptr) return lend();
  return Error{Error::Code::refused,
               "nobody is named whom CUPTI is to be lent to: give the tool's name"};
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

/// `options`: as cuda_options.hpp reads them; null: the defaults. `*made` belongs to the caller,
/// until release(). Without a bus, or a place for `made`: kWrongOptions.
int ringmain_cuda_attach(void* bus, const char* options, void** made, char* why,
                         std::size_t why_bytes) noexcept {
  return ringmain::c_answers::attach<Source, Options>(bus, options, made, why, why_bytes);
}
/// Detaches, and ends it.
void ringmain_cuda_release(void* source) noexcept {
  delete static_cast<Source*>(source);
}
/// ringmain::Detached.
int ringmain_cuda_detach(void* source) noexcept {
  return static_cast<int>(source_of(source).detach());
}
/// SourceState.
int ringmain_cuda_state_of(void* source) noexcept {
  return static_cast<int>(source_of(source).state());
}
/// `figures`: published, refused, suppressed, unkept; null: nothing is written.
void ringmain_cuda_counts(void* source, std::uint64_t* figures) noexcept {
  if (figures == nullptr) return;
  const ringmain::cuda::Counts now = source_of(source).counts();
  figures[0] = now.published;
  figures[1] = now.refused;
  figures[2] = now.suppressed;
  figures[3] = now.unkept;
}
/// 1: let go, 0: there was nothing to let go of, -1: refused.
int ringmain_cuda_lend_source(void* source, const char* to, char* why,
                              std::size_t why_bytes) noexcept {
  return answer_of([&] { return lend_to(to, [&] { return source_of(source).lend(to); }); }, why,
                   why_bytes);
}
/// 1: it has CUPTI again, 0: it has not, -1: refused.
int ringmain_cuda_take_back_source(void* source, char* why, std::size_t why_bytes) noexcept {
  return answer_of([&] { return source_of(source).take_back(); }, why, why_bytes);
}

// --- the source of this process, whoever attached it ---

/// SourceState; -1: there is none, or `bus` is not null and it is another's.
int ringmain_cuda_state(const void* bus) noexcept {
  try {
    const auto state = Source::state_in_process(static_cast<const Bus*>(bus));
    return state ? static_cast<int>(*state) : kNoSource;
  } catch (const std::exception&) {
    return kNoSource;
  }
}
int ringmain_cuda_lend(const char* to, char* why, std::size_t why_bytes) noexcept {
  return answer_of([&] { return lend_to(to, [&] { return Source::lend_in_process(to); }); }, why,
                   why_bytes);
}
int ringmain_cuda_take_back(char* why, std::size_t why_bytes) noexcept {
  return answer_of([] { return Source::take_back_in_process(); }, why, why_bytes);
}

}  // extern "C"
#pragma GCC visibility pop
