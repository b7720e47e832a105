// What does a Python callback get? A run of events of one type, in the memory into which the engine
// took the run.
//
// The batch owns that memory. A NumPy array over it holds the batch, so it may be kept; the engine
// takes its next run into other memory.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "engine/channel/channel_core.hpp"

#include "bindings/python/native/layout.hpp"

namespace ringmain::python {

/// Memory for one run.
struct Room {
  struct Free {
    void operator()(std::byte* given) const noexcept { std::free(given); }
  };
  std::unique_ptr<std::byte, Free> memory;
  std::size_t bytes = 0;
  /// The RoomFn of take_run_of(): `maker` is a Room.
  static std::byte* make(void* maker, std::size_t bytes) noexcept;
};

class Batch {
 public:
  Batch(Room room, const engine::Run& run);

  [[nodiscard]] const Layout& layout() const noexcept { return *layout_; }
  [[nodiscard]] std::size_t size() const noexcept { return run_.count; }
  [[nodiscard]] std::size_t stride() const noexcept { return run_.stride; }
  [[nodiscard]] std::size_t payload_offset() const noexcept { return run_.payload_offset; }
  [[nodiscard]] std::byte* first() const noexcept { return const_cast<std::byte*>(run_.first); }
  [[nodiscard]] const std::byte* event(std::size_t i) const noexcept { return run_.payload(i); }
  [[nodiscard]] Stamp stamp(std::size_t i) const noexcept;
  [[nodiscard]] std::string_view channel() const noexcept { return channel_->options().name; }
  [[nodiscard]] const Room& room() const noexcept { return room_; }

 private:
  Room room_;
  engine::Run run_;
  engine::Ref<engine::ChannelCore> channel_;
  const Layout* layout_;
};

/// One event with its fields as attributes: of a batch, which it keeps alive, or inline, as a copy.
struct Record {
  const Layout* layout = nullptr;
  const std::byte* event = nullptr;
  nb::object batch;       // none if `own` holds the event
  std::size_t index = 0;  // in the batch
  std::vector<std::byte> own;
  std::string channel;  // if the event is not in a batch
};

/// Classes Batch, Record, Stamp.
void bind_batch(nb::module_& m);

}  // namespace ringmain::python
