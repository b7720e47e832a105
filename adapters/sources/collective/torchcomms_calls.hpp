// How does a call of torchcomms become an operation of ours? Its pre hook issues it, and its post
// hook says that the call has returned; both are called in the caller's thread.
//
// torchcomms calls no post hook where its backend throws, where another of its hooks refuses, or
// where a split gives this rank nothing. Its communicators are called from one thread at a time, so
// a call is known to be over when the next one of that communicator begins in its thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <typeinfo>

#include "communicator.hpp"

namespace ringmain::collective::torchcomms {

/// torchcomms' own arguments of a hook: a variant, of this type.
struct Given {
  const void* object = nullptr;
  const std::type_info* type = nullptr;
};

/// The calls of one communicator of torchcomms'. Threads: any, but before() and after() of one call
/// in the same.
class Calls {
 public:
  explicit Calls(Communicator reports) noexcept : reports_(std::move(reports)) {}
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() = default;

  /// Why a hook of ours refuses; Name(): it may go on. That our communicator has ended, or was
  /// aborted, refuses nothing. Throws std::bad_alloc.
  [[nodiscard]] Name before(std::size_t op_id, const Arguments& arguments, Given given) const;
  /// The call has returned. The operation, for who will hear of its end; none: nobody listens, or
  /// there was no before().
  std::optional<Operation> after(std::size_t op_id, const void* work, Given given) const;
  /// The same of a split; `part` is the one that this rank is in.
  std::optional<Operation> after_split(std::size_t op_id, const Communicator* part,
                                       Given given) const;
  [[nodiscard]] const Communicator& communicator() const noexcept { return reports_; }

 private:
  const Communicator reports_;
};

/// What torchcomms gave for the call that a hook of ours is told of here, if it is of that type.
[[nodiscard]] const void* given_for(const PreHookArgs& args, const std::type_info& type) noexcept;
[[nodiscard]] const void* given_for(const PostHookArgs& args, const std::type_info& type) noexcept;

/// WorkStatus of torchcomms, where it is an end; `unknown`: nobody will say it.
enum class End : std::uint8_t { completed, timed_out, error, unknown };
void say_end(const Operation& operation, End end) noexcept;

/// torchcomms' word for a type of elements, "Float", as ours: "float32".
[[nodiscard]] Name dtype_of(std::string_view theirs) noexcept;

}  // namespace ringmain::collective::torchcomms
