#include "adapters/sources/cuda/cuda_arguments.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "adapters/sources/cuda/cuda_argument_layouts.hpp"

namespace ringmain::cuda {
namespace {

using layout::Address;

/// A copy of what lies there: NVIDIA's structs have other types than ours.
template <class T>
T at(const void* place) noexcept {
  T copy;
  std::memcpy(&copy, place, sizeof copy);
  return copy;
}
/// What the caller's pointer points at; zeros where it is null.
template <class T>
T pointed(Address pointer) noexcept {
  return pointer == 0 ? T{} : at<T>(reinterpret_cast<const void*>(pointer));  // NOLINT
}
/// What the call answered.
template <class T = Address>
T answered(Address out, bool returned) noexcept {
  return returned ? pointed<T>(out) : T{};
}

/// A call that fails may have asked for anything.
std::uint64_t product(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<std::uint64_t>::max() : result;
}
/// An array without height or depth has fewer dimensions.
std::uint64_t elements(std::uint64_t width, std::uint64_t height, std::uint64_t depth) noexcept {
  return product(product(width, std::max<std::uint64_t>(height, 1)),
                 std::max<std::uint64_t>(depth, 1));
}
std::uint64_t element_bytes(const layout::ChannelBits& bits) noexcept {
  std::int64_t sum = 0;
  for (const std::int64_t each : {bits.x, bits.y, bits.z, bits.w}) {
    if (each < 0) return 0;
    sum += each;
  }
  return static_cast<std::uint64_t>(sum) / 8;
}
/// CUarray_format: those whose channels have a size of their own.
std::uint64_t channel_bytes(std::uint32_t format) noexcept {
  switch (format) {
    case 0x01:  // unsigned, of 8, 16 and 32 bits
    case 0x08:  // signed
      return 1;
    case 0x02:
    case 0x09:
    case 0x10:  // half
      return 2;
    case 0x03:
    case 0x0a:
    case 0x20:  // float
      return 4;
    default:
      return 0;
  }
}

Arguments read_stream(const CallRow& row, const void* params, bool returned) noexcept {
  Arguments result;
  const auto made = [&result, returned](Address out) {
    result.handle = answered(out, returned);
    if (returned && out != 0) result.stream = result.handle;
  };
  switch (row.shape) {
    case CallShape::stream:
      result.handle = result.stream = at<layout::Handle>(params).handle;
      break;
    case CallShape::stream_made:
      made(at<layout::StreamMade>(params).out);
      break;
    case CallShape::stream_flags: {
      const auto given = at<layout::StreamFlags>(params);
      made(given.out);
      result.flags = given.flags;
      break;
    }
    case CallShape::stream_priority: {
      const auto given = at<layout::StreamPriority>(params);
      made(given.out);
      result.flags = given.flags;
      result.priority = given.priority;
      break;
    }
    default: {
      const auto given = at<layout::StreamOfContext>(params);
      made(given.out);
      result.flags = given.flags;
      result.priority = given.priority;
    }
  }
  return result;
}

Arguments read_event(const CallRow& row, const void* params, bool returned) noexcept {
  Arguments result;
  switch (row.shape) {
    case CallShape::event_made: {
      const auto given = at<layout::EventMade>(params);
      result.handle = answered(given.out, returned);
      result.flags = given.flags;
      break;
    }
    case CallShape::record: {
      const auto given = at<layout::Record>(params);
      result.handle = given.event;
      result.stream = given.stream;
      break;
    }
    case CallShape::record_flags: {
      const auto given = at<layout::RecordFlags>(params);
      result.handle = given.event;
      result.stream = given.stream;
      result.flags = given.flags;
      break;
    }
    case CallShape::wait: {
      const auto given = at<layout::Wait>(params);
      result.handle = given.event;
      result.stream = given.stream;
      result.flags = given.flags;
      break;
    }
    default:
      result.handle = at<layout::ContextEvent>(params).event;
  }
  return result;
}

Arguments read_memory(const CallRow& row, const void* params, bool returned) noexcept {
  Arguments result;
  switch (row.shape) {
    case CallShape::memory: {
      const auto given = at<layout::Memory>(params);
      result.handle = answered(given.out, returned);
      result.bytes = given.bytes;
      break;
    }
    case CallShape::memory_32: {
      const auto given = at<layout::Memory32>(params);
      result.handle = answered<std::uint32_t>(given.out, returned);
      result.bytes = given.bytes;
      break;
    }
    case CallShape::host_memory_32: {
      const auto given = at<layout::Memory32>(params);
      result.handle = answered(given.out, returned);
      result.bytes = given.bytes;
      break;
    }
    case CallShape::memory_on_stream: {
      const auto given = at<layout::MemoryOnStream>(params);
      result.handle = answered(given.out, returned);
      result.bytes = given.bytes;
      result.stream = given.stream;
      break;
    }
    case CallShape::memory_from_pool: {
      const auto given = at<layout::MemoryFromPool>(params);
      result.handle = answered(given.out, returned);
      result.bytes = given.bytes;
      result.stream = given.stream;
      break;
    }
    case CallShape::memory_buffer: {
      const auto given = at<layout::MemoryBuffer>(params);
      result.handle = answered(given.out, returned);
      result.bytes = pointed<layout::BufferDescription>(given.described).bytes;
      break;
    }
    case CallShape::range: {
      const auto given = at<layout::Range>(params);
      result.handle = given.address;
      result.bytes = given.bytes;
      break;
    }
    default: {
      const auto given = at<layout::FreeOnStream>(params);
      result.handle = given.address;
      result.stream = given.stream;
    }
  }
  return result;
}

Arguments read_pitched(const CallRow& row, const void* params, bool returned) noexcept {
  Arguments result;
  if (row.shape == CallShape::pitched) {
    const auto given = at<layout::Pitched>(params);
    const auto pitch = answered<std::uint64_t>(given.pitch, returned);
    result.handle = answered(given.out, returned);
    result.bytes = product(std::max(pitch, given.width), given.height);
  } else if (row.shape == CallShape::pitched_32) {
    const auto given = at<layout::Pitched32>(params);
    const auto pitch = answered<std::uint32_t>(given.pitch, returned);
    result.handle = answered<std::uint32_t>(given.out, returned);
    result.bytes = product(std::max(pitch, given.width), given.height);
  } else {
    const auto given = at<layout::Pitched3d>(params);
    const auto answer = answered<layout::PitchedPointer>(given.out, returned);
    result.handle = answer.address;
    result.bytes = product(product(std::max(answer.pitch, given.extent.width), given.extent.height),
                           given.extent.depth);
  }
  return result;
}

Arguments read_array(const CallRow& row, const void* params, bool returned) noexcept {
  Arguments result;
  if (row.shape == CallShape::array || row.shape == CallShape::array_3d) {
    const auto given = at<layout::ArrayDescribed>(params);  // both begin alike
    const auto bytes = element_bytes(pointed<layout::ChannelBits>(given.described));
    const auto extent =
        row.shape == CallShape::array_3d
            ? at<layout::Array3d>(params).extent
            : layout::Extent{at<layout::Array>(params).width, at<layout::Array>(params).height, 0};
    result.handle = answered(given.out, returned);
    result.bytes = product(elements(extent.width, extent.height, extent.depth), bytes);
    return result;
  }
  const auto given = at<layout::ArrayDescribed>(params);
  result.handle = answered(given.out, returned);
  layout::Array3dDescription what{};
  if (row.shape == CallShape::array_3d_described) {
    what = pointed<layout::Array3dDescription>(given.described);
  } else {
    const auto flat = pointed<layout::ArrayDescription>(given.described);
    what = {flat.width, flat.height, 0, flat.format, flat.channels};
  }
  result.bytes = product(elements(what.width, what.height, what.depth),
                         channel_bytes(what.format) * what.channels);
  return result;
}

Arguments read_context(const CallRow& row, const void* params, bool returned) noexcept {
  Arguments result;
  const auto made = [&result, returned](const auto& given) {
    result.handle = answered(given.out, returned);
    result.flags = given.flags;
    result.device = given.device;
  };
  switch (row.shape) {
    case CallShape::context_made:
      made(at<layout::ContextMade>(params));
      break;
    case CallShape::context_affine:
      made(at<layout::ContextAffine>(params));
      break;
    case CallShape::context_parametrized:
      made(at<layout::ContextParametrized>(params));
      break;
    case CallShape::context_green:
      made(at<layout::ContextGreen>(params));
      break;
    default:
      result.device = at<layout::Device>(params).device;
  }
  return result;
}

Arguments read_capture(const CallRow& row, const void* params, bool returned) noexcept {
  Arguments result;
  if (row.shape == CallShape::capture_into) {
    const auto given = at<layout::CaptureInto>(params);
    result.stream = given.stream;
    result.graph = given.graph;
  } else if (row.shape == CallShape::recapture_into) {
    const auto given = at<layout::RecaptureInto>(params);
    result.stream = given.stream;
    result.graph = given.graph;
  } else if (row.shape == CallShape::capture_end) {
    const auto given = at<layout::CaptureEnd>(params);
    result.stream = given.stream;
    result.graph = answered(given.out, returned);
  } else {
    const auto given = at<layout::GraphLaunch>(params);
    result.stream = given.stream;
    result.graph = given.graph;
  }
  return result;
}

Arguments read(const CallRow& row, const void* params, bool returned) noexcept {
  switch (row.shape) {
    case CallShape::none:
    case CallShape::unread:
      return {};
    case CallShape::handle:
      return {.handle = at<layout::Handle>(params).handle};
    case CallShape::handle_32:
      return {.handle = at<layout::Handle32>(params).handle};
    case CallShape::out_handle:
      return {.handle = answered(at<layout::Handle>(params).handle, returned)};
    case CallShape::stream:
    case CallShape::stream_made:
    case CallShape::stream_flags:
    case CallShape::stream_priority:
    case CallShape::stream_of_context:
      return read_stream(row, params, returned);
    case CallShape::event_made:
    case CallShape::record:
    case CallShape::record_flags:
    case CallShape::wait:
    case CallShape::context_event:
      return read_event(row, params, returned);
    case CallShape::memory:
    case CallShape::memory_32:
    case CallShape::host_memory_32:
    case CallShape::memory_on_stream:
    case CallShape::memory_from_pool:
    case CallShape::memory_buffer:
    case CallShape::range:
    case CallShape::free_on_stream:
      return read_memory(row, params, returned);
    case CallShape::pitched:
    case CallShape::pitched_32:
    case CallShape::pitched_3d:
      return read_pitched(row, params, returned);
    case CallShape::array:
    case CallShape::array_3d:
    case CallShape::array_described:
    case CallShape::array_3d_described:
      return read_array(row, params, returned);
    case CallShape::context_made:
    case CallShape::context_affine:
    case CallShape::context_parametrized:
    case CallShape::context_green:
    case CallShape::device:
      return read_context(row, params, returned);
    case CallShape::capture_into:
    case CallShape::recapture_into:
    case CallShape::capture_end:
    case CallShape::graph_launch:
      return read_capture(row, params, returned);
  }
  return {};
}

}  // namespace

Arguments read_arguments(const CallRow& row, const void* params, bool returned) noexcept {
  if (params == nullptr) return {};
  Arguments result = read(row, params, returned);
  constexpr std::uint64_t kPerThread = 2;  // cudaStreamPerThread, CU_STREAM_PER_THREAD
  if (row.per_thread_stream && result.stream == 0) {
    if (row.shape == CallShape::stream) result.handle = kPerThread;
    result.stream = kPerThread;
  }
  return result;
}

}  // namespace ringmain::cuda
