// What happens when a program calls NVTX? The call is published (nvtx_publish.hpp), and passed on
// to the chained tool with that tool's own handles.
//
// The handles that programs see are ringmain's, so that each call finds its domain and its text by
// a load. A range that is started gets the chained tool's id, if there is one, so that both know
// it.
#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "adapters/sources/nvtx/nvtx_names.hpp"
#include "adapters/sources/nvtx/nvtx_publish.hpp"
#include "adapters/sources/nvtx/nvtx_source.hpp"

namespace ringmain::nvtx {
namespace {

using abi::EventAttributes;
using abi::Handle;
using abi::RangeId;

std::array<std::atomic<abi::Function>, abi::kCoreSize> next_core{};
std::array<std::atomic<abi::Function>, abi::kCore2Size> next_core2{};
std::array<std::atomic<abi::Function>, abi::kSyncSize> next_sync{};

// --- the chained tool ---

template <class F>
F* next(abi::Core id) noexcept {
  return reinterpret_cast<F*>(next_core[id].load());
}
template <class F>
F* next(abi::Core2 id) noexcept {
  return reinterpret_cast<F*>(next_core2[id].load());
}

/// Attributes with the chained tool's handle of a registered string in place of ringmain's.
template <class A>
class Translated {
 public:
  explicit Translated(const A* given) noexcept : given_(given) {
    if (given == nullptr || given->bytes < sizeof *given ||
        given->message_type != abi::kRegistered || given->message.registered == nullptr) {
      return;
    }
    copy_ = *given;
    copy_.bytes = sizeof copy_;
    copy_.message.registered = static_cast<Registered*>(given->message.registered)->theirs;
    given_ = &copy_;
  }
  operator const A*() const noexcept { return given_; }  // NOLINT(google-explicit-constructor)

 private:
  A copy_{};
  const A* given_;
};
using Event = Translated<EventAttributes>;

void* their(Handle domain) noexcept {
  return domain == nullptr ? nullptr : domain_of(domain).theirs;
}

// --- NVTX's functions: the default domain ---

void mark_ex(const EventAttributes* given) {
  mark(domain_of(nullptr), given);
  if (auto* f = next<void(const EventAttributes*)>(abi::kMarkEx)) f(Event(given));
}
template <class C, abi::Core Id>
void mark_text(const C* text) {
  mark(domain_of(nullptr), text);
  if (auto* f = next<void(const C*)>(Id)) f(text);
}
RangeId range_start_ex(const EventAttributes* given) {
  auto* f = next<RangeId(const EventAttributes*)>(abi::kRangeStartEx);
  return start(domain_of(nullptr), given, f != nullptr ? f(Event(given)) : 0);
}
template <class C, abi::Core Id>
RangeId range_start_text(const C* text) {
  auto* f = next<RangeId(const C*)>(Id);
  return start(domain_of(nullptr), text, f != nullptr ? f(text) : 0);
}
void range_end(RangeId id) {
  end(domain_of(nullptr), id);
  if (auto* f = next<void(RangeId)>(abi::kRangeEnd)) f(id);
}
int range_push_ex(const EventAttributes* given) {
  const int depth = push(domain_of(nullptr), given);
  auto* f = next<int(const EventAttributes*)>(abi::kRangePushEx);
  return f != nullptr ? f(Event(given)) : depth;
}
template <class C, abi::Core Id>
int range_push_text(const C* text) {
  const int depth = push(domain_of(nullptr), text);
  auto* f = next<int(const C*)>(Id);
  return f != nullptr ? f(text) : depth;
}
int range_pop() {
  const int depth = pop(domain_of(nullptr));
  auto* f = next<int()>(abi::kRangePop);
  return f != nullptr ? f() : depth;
}

/// The whole text, because it is interned and not cut to a message's length.
std::string_view whole(const char* text, std::array<char, 256>&) noexcept {
  return text == nullptr ? std::string_view() : text;
}
std::string_view whole(const wchar_t* text, std::array<char, 256>& room) noexcept {
  return text == nullptr ? std::string_view() : narrow(text, room);
}
template <class C, abi::Core Id>
void name_category_text(std::uint32_t category, const C* text) {
  std::array<char, 256> room;
  name_category(domain_of(nullptr), category, whole(text, room));
  if (auto* f = next<void(std::uint32_t, const C*)>(Id)) f(category, text);
}

// --- the same in a domain ---

void domain_mark_ex(Handle domain, const EventAttributes* given) {
  mark(domain_of(domain), given);
  if (auto* f = next<void(Handle, const EventAttributes*)>(abi::kDomainMarkEx)) {
    f(their(domain), Event(given));
  }
}
RangeId domain_range_start_ex(Handle domain, const EventAttributes* given) {
  auto* f = next<RangeId(Handle, const EventAttributes*)>(abi::kDomainRangeStartEx);
  return start(domain_of(domain), given, f != nullptr ? f(their(domain), Event(given)) : 0);
}
void domain_range_end(Handle domain, RangeId id) {
  end(domain_of(domain), id);
  if (auto* f = next<void(Handle, RangeId)>(abi::kDomainRangeEnd)) f(their(domain), id);
}
int domain_range_push_ex(Handle domain, const EventAttributes* given) {
  const int depth = push(domain_of(domain), given);
  auto* f = next<int(Handle, const EventAttributes*)>(abi::kDomainRangePushEx);
  return f != nullptr ? f(their(domain), Event(given)) : depth;
}
int domain_range_pop(Handle domain) {
  const int depth = pop(domain_of(domain));
  auto* f = next<int(Handle)>(abi::kDomainRangePop);
  return f != nullptr ? f(their(domain)) : depth;
}
template <class C, abi::Core2 Id>
void domain_name_category(Handle domain, std::uint32_t category, const C* text) {
  std::array<char, 256> room;
  name_category(domain_of(domain), category, whole(text, room));
  if (auto* f = next<void(Handle, std::uint32_t, const C*)>(Id)) f(their(domain), category, text);
}
template <class C, abi::Core2 Id>
Handle domain_register_string(Handle domain, const C* text) {
  auto* f = next<Handle(Handle, const C*)>(Id);
  Handle const theirs = f != nullptr ? f(their(domain), text) : nullptr;
  std::array<char, 256> room;
  return register_string(domain_of(domain), whole(text, room), theirs);
}
template <class C, abi::Core2 Id>
Handle domain_create(const C* name) {
  auto* f = next<Handle(const C*)>(Id);
  Handle const theirs = f != nullptr ? f(name) : nullptr;
  std::array<char, 256> room;
  return create_domain(whole(name, room), theirs);
}
void domain_destroy(Handle domain) {
  if (auto* f = next<void(Handle)>(abi::kDomainDestroy)) f(their(domain));
}
Handle domain_resource_create(Handle domain, abi::ResourceAttributes* given) {
  auto* f = next<Handle(Handle, const abi::ResourceAttributes*)>(abi::kDomainResourceCreate);
  return f != nullptr ? f(their(domain), Translated<abi::ResourceAttributes>(given)) : nullptr;
}
Handle sync_user_create(Handle domain, const abi::SyncAttributes* given) {
  using F = Handle(Handle, const abi::SyncAttributes*);
  auto* f = reinterpret_cast<F*>(next_sync[abi::kSyncUserCreate].load());
  return f != nullptr ? f(their(domain), Translated<abi::SyncAttributes>(given)) : nullptr;
}

template <class F>
abi::Function any(F* function) noexcept {
  return reinterpret_cast<abi::Function>(function);
}

Ours of_core(unsigned id) noexcept {
  switch (id) {
    case abi::kMarkEx:
      return {any(mark_ex)};
    case abi::kMarkA:
      return {any(mark_text<char, abi::kMarkA>)};
    case abi::kMarkW:
      return {any(mark_text<wchar_t, abi::kMarkW>)};
    case abi::kRangeStartEx:
      return {any(range_start_ex)};
    case abi::kRangeStartA:
      return {any(range_start_text<char, abi::kRangeStartA>)};
    case abi::kRangeStartW:
      return {any(range_start_text<wchar_t, abi::kRangeStartW>)};
    case abi::kRangeEnd:
      return {any(range_end)};
    case abi::kRangePushEx:
      return {any(range_push_ex)};
    case abi::kRangePushA:
      return {any(range_push_text<char, abi::kRangePushA>)};
    case abi::kRangePushW:
      return {any(range_push_text<wchar_t, abi::kRangePushW>)};
    case abi::kRangePop:
      return {any(range_pop)};
    case abi::kNameCategoryA:
      return {any(name_category_text<char, abi::kNameCategoryA>)};
    case abi::kNameCategoryW:
      return {any(name_category_text<wchar_t, abi::kNameCategoryW>)};
    default:
      return {};
  }
}

Ours of_core2(unsigned id) noexcept {
  switch (id) {
    case abi::kDomainMarkEx:
      return {any(domain_mark_ex)};
    case abi::kDomainRangeStartEx:
      return {any(domain_range_start_ex)};
    case abi::kDomainRangeEnd:
      return {any(domain_range_end)};
    case abi::kDomainRangePushEx:
      return {any(domain_range_push_ex)};
    case abi::kDomainRangePop:
      return {any(domain_range_pop)};
    case abi::kDomainResourceCreate:
      return {any(domain_resource_create), true};
    case abi::kDomainNameCategoryA:
      return {any(domain_name_category<char, abi::kDomainNameCategoryA>)};
    case abi::kDomainNameCategoryW:
      return {any(domain_name_category<wchar_t, abi::kDomainNameCategoryW>)};
    case abi::kDomainRegisterStringA:
      return {any(domain_register_string<char, abi::kDomainRegisterStringA>)};
    case abi::kDomainRegisterStringW:
      return {any(domain_register_string<wchar_t, abi::kDomainRegisterStringW>)};
    case abi::kDomainCreateA:
      return {any(domain_create<char, abi::kDomainCreateA>)};
    case abi::kDomainCreateW:
      return {any(domain_create<wchar_t, abi::kDomainCreateW>)};
    case abi::kDomainDestroy:
      return {any(domain_destroy)};
    default:
      return {};
  }
}

}  // namespace

Ours our_function(abi::Module module, unsigned id) noexcept {
  if (module == abi::kCore) return of_core(id);
  if (module == abi::kCore2) return of_core2(id);
  if (id == abi::kSyncUserCreate) return {any(sync_user_create), true};
  return {};
}

void set_next(abi::Module module, unsigned id, abi::Function next) noexcept {
  if (module == abi::kCore && id < next_core.size()) next_core[id] = next;
  if (module == abi::kCore2 && id < next_core2.size()) next_core2[id] = next;
  if (module == abi::kSync && id < next_sync.size()) next_sync[id] = next;
}

}  // namespace ringmain::nvtx
