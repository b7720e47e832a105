#include "tests/interleave/fibers.hpp"

#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <link.h>

namespace ringmain::interleave {
namespace {

/// The program's own block of thread-locals: where it lies, and how it starts.
struct Block {
  std::byte* at = nullptr;
  const std::byte* first = nullptr;
  std::size_t first_bytes = 0, bytes = 0;
};

int find_block(dl_phdr_info* info, std::size_t, void* found) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_TLS) continue;
    *static_cast<Block*>(found) = {
        static_cast<std::byte*>(info->dlpi_tls_data),
        reinterpret_cast<const std::byte*>(info->dlpi_addr + header.p_vaddr),  // NOLINT
        header.p_filesz, header.p_memsz};
  }
  return 1;  // the program itself is the first; the others are not asked
}

const Block& block() {
  static const Block found = [] {
    Block b;
    ::dl_iterate_phdr(&find_block, &b);
    return b;
  }();
  return found;
}

}  // namespace

void ThreadImage::reset() {
  locals_.assign(block().bytes, std::byte{0});
  if (block().first_bytes != 0) std::memcpy(locals_.data(), block().first, block().first_bytes);
  exceptions_ = {};
}

void ThreadImage::save() {
  if (block().bytes != 0) {
    locals_.resize(block().bytes);
    std::memcpy(locals_.data(), block().at, block().bytes);
  }
  std::memcpy(exceptions_.data(), abi::__cxa_get_globals(), sizeof exceptions_);
}

void ThreadImage::load() const {
  if (block().bytes != 0) std::memcpy(block().at, locals_.data(), block().bytes);
  std::memcpy(abi::__cxa_get_globals(), exceptions_.data(), sizeof exceptions_);
}

void Fiber::prepare(void (*entry)()) {
  enum : std::size_t { kStackBytes = 256 * 1024 };
  if (stack == nullptr) stack = static_cast<std::byte*>(std::malloc(kStackBytes));  // NOLINT: kept
  if (stack == nullptr) std::abort();
  ::getcontext(&context);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  ::makecontext(&context, entry, 0);
  image.reset();
  state = State::ready;
  on = nullptr;
  until_ns = -1;
  timed_out = false;
  doing = function = "";
  buffer.clear();
  at_exit.clear();
  handler = nullptr;
  handlers = 0;
}

}  // namespace ringmain::interleave
