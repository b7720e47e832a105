#include "adapters/sources/replay/kineto_trace.hpp"

#include <optional>
#include <span>
#include <utility>

#include "adapters/sources/replay/kineto_index.hpp"

namespace ringmain::replay {

struct KinetoTrace::Core {
  Core(KinetoReader opened, const KinetoOptions& options)
      : reader(std::move(opened)), index(options), mapper(index) {}

  KinetoReader reader;
  KinetoIndex index;
  KinetoMapper mapper;
  KinetoRecord record;
  std::span<const KinetoMapped> pending;  // of the record at hand, not yet given
  std::optional<Error> fault;             // where the first reading ended
};

KinetoTrace::KinetoTrace(std::unique_ptr<Core> core) noexcept : core_(std::move(core)) {}
KinetoTrace::KinetoTrace(KinetoTrace&&) noexcept = default;
KinetoTrace& KinetoTrace::operator=(KinetoTrace&&) noexcept = default;
KinetoTrace::~KinetoTrace() = default;

Result<KinetoTrace> KinetoTrace::open(const std::string& path, const KinetoOptions& options) {
  auto reader = KinetoReader::open(path, options, true);
  if (!reader) return reader.error();
  auto core = std::make_unique<Core>(std::move(reader).value(), options);
  if (auto error = core->index.read(core->reader, core->fault)) return *error;
  KinetoTrace trace(std::move(core));
  trace.rewind();
  return trace;
}

Result<bool> KinetoTrace::next(KinetoMapped& mapped) {
  Core& core = *core_;
  if (core.pending.empty()) {
    const auto more = core.reader.next(core.record);
    if (!more || !more.value()) {
      if (core.fault) return *core.fault;  // a pipe's copy ends where its reading failed
      return more;
    }
    core.pending = core.mapper.map(core.record);
  }
  mapped = core.pending.front();
  core.pending = core.pending.subspan(1);
  return true;
}

void KinetoTrace::rewind() {
  core_->pending = {};
  core_->reader.rewind(core_->index.header.base_ns);
  core_->mapper.begin();
}

const std::vector<KinetoLane>& KinetoTrace::lanes() const noexcept {
  return core_->index.lanes.lanes();
}
std::uint64_t KinetoTrace::crowded() const noexcept {
  return core_->index.lanes.crowded();
}
const KinetoHeader& KinetoTrace::header() const noexcept {
  return core_->index.header;
}
std::uint64_t KinetoTrace::records() const noexcept {
  return core_->index.records;
}
const KinetoCounts& KinetoTrace::counts() const noexcept {
  return core_->reader.counts();
}
std::uint64_t KinetoTrace::position() const noexcept {
  return core_->reader.position();
}
std::uint64_t KinetoTrace::size() const noexcept {
  return core_->reader.size();
}

}  // namespace ringmain::replay
