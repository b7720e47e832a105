#include "tests/harness/nccl/plugin_view.hpp"

#include <array>
#include <cstring>
#include <dlfcn.h>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/harness/nccl/descriptors.hpp"
#include "tests/harness/nccl/live_handles.hpp"
#include "tests/harness/nccl/rules.hpp"

namespace ringmain::nccl_conformance {
namespace {

constexpr std::uint8_t kUnset = 0xA5;  // what a conversion left as it was
constexpr std::uint8_t kGone = 0x5B;   // what a call left behind; as a pointer it is not mapped
void* const kUnwritten = reinterpret_cast<void*>(std::uintptr_t{0xFEEDFACECAFE0001});

void quiet(int, unsigned long, const char*, int, const char*, ...) {}

/// A text on a page that is taken away once init returned.
class PassingText {
 public:
  PassingText(const char* text, Board& board) : board_(board) {
    if (text == nullptr) return;
    page_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page_ == MAP_FAILED) page_ = nullptr;
    if (page_ != nullptr) std::strncpy(static_cast<char*>(page_), text, size_ - 1);
  }
  PassingText(const PassingText&) = delete;
  PassingText& operator=(const PassingText&) = delete;
  // The addresses stay taken, so that a kept pointer leads to nothing else.
  ~PassingText() {
    if (page_ == nullptr) return;
    board_.gone(page_, size_);
    (void)::mprotect(page_, size_, PROT_NONE);
  }
  [[nodiscard]] const char* text() const noexcept { return static_cast<const char*>(page_); }

 private:
  Board& board_;
  const std::size_t size_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* page_ = nullptr;
};

/// Marks the board while a function of the plugin runs.
class Inside {
 public:
  Inside(Board& board, const char* function, const char* rule) noexcept : board_(board) {
    board_.enter(function, rule);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { board_.leave(); }

 private:
  Board& board_;
};

template <class Call>
auto with_table(int version, void* table, Call call) {
  switch (version) {
    case 4:
      return call(*static_cast<abi::TableV4*>(table));
    case 5:
      return call(*static_cast<abi::TableV5*>(table));
    case 6:
      return call(*static_cast<abi::TableV6*>(table));
    default:
      return call(*static_cast<abi::TableV7*>(table));
  }
}

bool known_to(int version, const abi::DescriptorV7& descriptor) {
  return descriptor.type <= abi::all_types(version);
}

bool whole(int version, void* table) {
  return with_table(version, table, [](const auto& functions) {
    return functions.name != nullptr && functions.init != nullptr &&
           functions.start_event != nullptr && functions.stop_event != nullptr &&
           functions.record_event_state != nullptr && functions.finalize != nullptr;
  });
}

}  // namespace

std::unique_ptr<PluginView> PluginView::open(const std::string& path, int version, int native,
                                             Board& board, std::string& error) {
  const Inside inside(board, "the library's initialization", rules::kOpens);
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    error = ::dlerror();
    if (path.find('/') == std::string::npos && ::access(path.c_str(), F_OK) == 0) {
      error += "; the file in this folder is ./" + path;
    }
    return nullptr;
  }
  const int newest = version != 0 ? version : native;
  const int oldest = version != 0 ? version : abi::kOldestVersion;
  for (int tried = newest; tried >= oldest; --tried) {
    void* const table = ::dlsym(library, abi::symbol_of(tried));
    if (table == nullptr) continue;
    if (whole(tried, table)) {
      return std::unique_ptr<PluginView>(new PluginView(library, table, tried, native, board));
    }
    error = std::string(abi::symbol_of(tried)) + " has a name or a function that is NULL";
    (void)::dlclose(library);
    return nullptr;
  }
  error = "it exports no ncclProfiler_v" + (version != 0 ? std::to_string(version) : "4 to 7");
  (void)::dlclose(library);
  return nullptr;
}

PluginView::PluginView(void* library, void* table, int version, int native, Board& board)
    : library_(library),
      table_(table),
      version_(version),
      native_(native),
      board_(board),
      live_(std::make_unique<LiveHandles>()),
      finalized_(std::make_unique<LiveHandles>()) {}

PluginView::~PluginView() {
  const Inside inside(board_, "the library's end", board_.driven());
  (void)::dlclose(library_);
}

const char* PluginView::name() const noexcept {
  return static_cast<const abi::TableV7*>(table_)->name;
}

abi::Result PluginView::init(void** context, std::uint64_t id, int* mask, const char* name,
                             int nodes, int ranks, int rank, const int& others) {
  const PassingText passing(name, board_);
  abi::Result result = abi::kSuccess;
  {
    const Inside inside(board_, "init", board_.driven());
    if (version_ == 4) {
      result = static_cast<abi::TableV4*>(table_)->init(context, mask, passing.text(), id, nodes,
                                                        ranks, rank, &quiet);
    } else {
      result = static_cast<abi::TableV5*>(table_)->init(context, id, mask, passing.text(), nodes,
                                                        ranks, rank, &quiet);
    }
  }
  finalized_->remove(*context);
  if (log_ != nullptr) log_->opened(*context, {id, rank});
  if (result != abi::kSuccess) {
    board_.found(rules::kInit, "init of rank %d returned %d", rank, result);
    return result;
  }
  const auto known = static_cast<int>(abi::all_types(version_));
  const int wanted = __atomic_load_n(mask, __ATOMIC_RELAXED);
  if ((wanted & ~known & ~__atomic_load_n(&others, __ATOMIC_RELAXED)) != 0) {
    board_.found(rules::kMask, "after init of v%d the mask is 0x%x, of which 0x%x are no types",
                 version_, static_cast<unsigned>(wanted), static_cast<unsigned>(wanted & ~known));
  }
  __atomic_store_n(mask, converted_mask(version_, wanted), __ATOMIC_RELAXED);
  return result;
}

void PluginView::finalize(void* context) {
  live_->clear();
  (void)finalized_->add(context);
  abi::Result result = abi::kSuccess;
  {
    const Inside inside(board_, "finalize", board_.driven());
    result = static_cast<abi::TableV7*>(table_)->finalize(context);
  }
  if (result != abi::kSuccess) {
    const bool open = board_.driven() == rules::kOpen;
    board_.found(open ? rules::kOpen : rules::kFinalize, "finalize returned %d", result);
  }
}

const char* PluginView::rule_of_start(void* context,
                                      const abi::DescriptorV7& descriptor) const noexcept {
  constexpr std::uint64_t kOnTheirOwn = abi::kGroup | abi::kGroupApi | abi::kProxyCtrl;
  const char* const driven = board_.driven();
  for (const char* const first :
       {rules::kForeignContext, rules::kForeignParent, rules::kName, rules::kFull}) {
    if (driven == first) return driven;
  }
  if (finalized_->has(context)) return rules::kTombstone;
  if (descriptor.type > abi::all_types(abi::kNewestVersion)) return rules::kUnknownType;
  if ((descriptor.type & kOnTheirOwn) != 0) return driven;
  if (descriptor.parent == nullptr) return rules::kNullParent;
  return live_->has(descriptor.parent) ? driven : rules::kDeadParent;
}

const char* PluginView::rule_of(void* handle, const char* if_dead,
                                const char* if_live) const noexcept {
  return live_->has(handle) ? if_live : if_dead;
}

template <class Descriptor>
void PluginView::start_as(void* context, void** handle, Descriptor& descriptor, const char* rule) {
  live_->remove(*handle);  // the variable is NCCL's only copy
  void* written = kUnwritten;
  const auto type = static_cast<unsigned>(descriptor.type);
  abi::Result result = abi::kSuccess;
  {
    const Inside inside(board_, "startEvent", rule);
    result = static_cast<abi::Table<abi::InitFn, Descriptor>*>(table_)->start_event(
        context, &written, &descriptor);
  }
  std::memset(static_cast<void*>(&descriptor), kGone, sizeof(descriptor));
  if (result != abi::kSuccess) {
    board_.found(rule != nullptr ? rule : rules::kStart, "startEvent of type 0x%x returned %d",
                 type, result);
  }
  if (written == kUnwritten) {
    board_.found(rules::kWritten, "startEvent of type 0x%x left *eHandle as it was%s%s", type,
                 rule != nullptr ? ", driving " : "", rule != nullptr ? rule : "");
    return;
  }
  *handle = written;
  if (written != nullptr && !live_->add(written)) {
    board_.found(rules::kDistinct,
                 "startEvent of type 0x%x gave %p, which is that of an open event", type, written);
  }
}

void PluginView::start(void* context, void** handle, abi::DescriptorV7& descriptor) {
  const bool again = descriptor.type == abi::kProxyStep && live_->has(*handle);
  const char* const rule = again ? rules::kRestarted : rule_of_start(context, descriptor);
  const abi::DescriptorV7 told = descriptor;  // nothing is left of it afterwards
  start_converted(context, handle, descriptor, rule);
  if (log_ != nullptr && known_to(version_, told)) {
    const bool foreign = told.type == abi::kProxyOp && told.proxy_op.pid != ::getpid();
    log_->began(told, context, *handle, foreign);
  }
}

void PluginView::start_converted(void* context, void** handle, abi::DescriptorV7& descriptor,
                                 const char* rule) {
  const auto converted = [&](auto& to) {
    std::memset(static_cast<void*>(&to), version_ == native_ ? 0 : kUnset, sizeof(to));
    switch (convert(descriptor, to)) {
      case Conversion::passed_on:
        return start_as(context, handle, to, rule);
      case Conversion::handle_cleared:
        *handle = nullptr;
        return;
      case Conversion::handle_untouched:
        return;
    }
  };
  if (version_ == 4) {
    abi::DescriptorV4 to;
    converted(to);
  } else if (version_ == 5) {
    abi::DescriptorV5 to;
    converted(to);
  } else if (version_ == 6) {
    abi::DescriptorV6 to;
    converted(to);
  } else {
    start_as(context, handle, descriptor, rule);
  }
}

void PluginView::stop(void* handle) {
  if (log_ != nullptr) log_->ended(handle);
  const char* const rule = rule_of(handle, rules::kStopDead, board_.driven());
  live_->remove(handle);
  abi::Result result = abi::kSuccess;
  {
    const Inside inside(board_, "stopEvent", rule);
    result = static_cast<abi::TableV7*>(table_)->stop_event(handle);
  }
  if (result != abi::kSuccess) {
    board_.found(rule != nullptr ? rule : rules::kStop, "stopEvent(%p) returned %d", handle,
                 result);
  }
}

void PluginView::record(void* handle, int state, const abi::StateArgs* args) {
  if (!passes(version_, state)) return;
  const bool sends =
      state == abi::kSendGpuWait || state == abi::kSendWait || state == abi::kSendPeerWait;
  if (log_ != nullptr && sends) log_->sent(handle);
  const bool null = args == nullptr && version_ == native_;  // conversions make arguments
  const char* const rule =
      rule_of(handle, rules::kRecordDead, null ? rules::kNullArgs : board_.driven());
  abi::StateArgs given{};
  if (args != nullptr) given = *args;
  abi::StateArgs* const pointer = null ? nullptr : &given;
  abi::Result result = abi::kSuccess;
  {
    const Inside inside(board_, "recordEventState", rule);
    result = static_cast<abi::TableV7*>(table_)->record_event_state(
        handle, static_cast<abi::State>(state), pointer);
  }
  std::memset(static_cast<void*>(&given), kGone, sizeof(given));
  if (result != abi::kSuccess) {
    board_.found(rule != nullptr ? rule : rules::kRecord,
                 "recordEventState of state %d returned %d", state, result);
  }
}

void PluginView::forget(void* handle) noexcept {
  live_->remove(handle);
}

}  // namespace ringmain::nccl_conformance
