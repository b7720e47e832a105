#include "adapters/sources/compile/scope.hpp"

#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <typeinfo>

#include "adapters/sources/compile/clock.hpp"

namespace ringmain::compile {

Scope::Scope(Registry& registry, const Compiled& what) noexcept
    : registry_(registry), began_ns_(now_ns()) {
  static_cast<Id&>(start_) = what.id;
  start_.trigger = what.trigger;
  start_.function = what.function;
  start_.file = what.file;
  start_.line = what.line;
  PublishResult result;
  registry_.begin(start_, result);
  vetoed_ = result == PublishCode::vetoed;
  why_ = result.why;
}

Scope::~Scope() {
  End said;
  static_cast<Span&>(said) = start_;
  said.took_ns = now_ns() - began_ns_;
  said.exception = exception_;
  said.reason = reason_;
  if (vetoed_) {
    said.outcome = Outcome::cancelled;
    said.exception = Name{};
    said.reason = why_;
  } else if (failed_ || std::uncaught_exceptions() > thrown_before_) {
    said.outcome = Outcome::failed;
  } else {
    said.outcome = Outcome::completed;
  }
  registry_.end(said);
}

void Scope::failed(Name exception, Name reason) noexcept {
  if (std::exchange(failed_, true)) return;
  exception_ = exception;
  reason_ = reason;
}

void Scope::failed(const std::exception& thrown) noexcept {
  const char* const name = typeid(thrown).name();
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> words(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  failed(Name(status == 0 && words ? words.get() : name), Name(thrown.what()));
}

}  // namespace ringmain::compile
