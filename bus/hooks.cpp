#include "bus/hooks.hpp"

#include "engine/deliver/merge.hpp"

#include "bus/core/bus_core.hpp"
#include "bus/core/erased.hpp"

namespace ringmain::detail {
namespace {

engine::ChannelCoreOptions row_options(BusCore& bus, std::string name,
                                       std::uint32_t payload_bytes) {
  engine::ChannelCoreOptions options;
  options.name = std::move(name);
  options.owner = static_cast<SubscriptionHost*>(&bus);
  options.payload_bytes = payload_bytes;
  options.lanes_max = engine::ChannelCore::kLanesMax;
  options.pulled = true;
  options.queueless = true;
  return options;
}

}  // namespace

BusCore& core_of(Bus& bus) noexcept {
  return Erased::core(bus);
}

Result<engine::ChannelCore*> make_hook_row(BusCore& core, std::string name,
                                           std::uint32_t payload_bytes) try {
  if (core.forked()) {
    return Error{Error::Code::refused, "hook row '" + name +
                                           "': the bus belongs to the process that forked this "
                                           "one; make a Bus in the child"};
  }
  const engine::Ref<engine::ChannelCore> row =
      engine::make_channel_core(&core.engine(), row_options(core, std::move(name), payload_bytes));
  if (!core.engine().add(*row)) {
    return Error{Error::Code::no_memory,
                 "no room for hook row '" + row->options().name +
                     "': a bus holds 4096 channels, mailboxes and hook rows; use another bus"};
  }
  if (row->line.closing()) {
    core.engine().retire(*row);
    return Error{Error::Code::refused, "hook row '" + row->options().name +
                                           "': the bus has stopped; make it before stop()"};
  }
  row->hold();
  core.hold();  // its subscriptions ask for it, also after ~Bus()
  return row.get();
} catch (const std::bad_alloc&) {
  return Error{Error::Code::no_memory, "out of memory"};  // short: it is not allocated
}

void end_hook_row(engine::ChannelCore& row) noexcept {
  auto* const host = static_cast<BusCore*>(SubscriptionHost::of(row));
  row.close_line();  // from here on a hook that is released is detached at once
  host->end_kept_of(row);
  row.host().retire(row);
  row.release();
  host->release();
}

PublishResult call_hook_row(engine::ChannelCore& row, engine::BuildFn* build,
                            const void* event) noexcept {
  void* const from = const_cast<void*>(event);  // `build` only reads it
  // The lane holds the row's core while a hook of it runs, which may end the row.
  if (engine::Lane* const lane = engine::thread_lane(row))
    return result_of(engine::push_slowly(*lane, build, from, 0));
  return result_of(engine::push_once(row, build, from));
}

}  // namespace ringmain::detail
