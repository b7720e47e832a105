// What do compiled programs rely on that no symbol shows? Prints it, one thing a line, for
// tools/abi.py to compare: the layout of each event, and how plugins and ringmain call each other.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "events/all.hpp"

#include "adapters/plugin.hpp"

namespace {

using ringmain::registry::Bridge;
using ringmain::registry::Sink;

std::string text(std::string_view view) {
  return std::string(view);
}

template <class E>
void describe_event() {
  const ringmain::Schema& schema = ringmain::schema<E>();
  const std::string name = "event " + text(schema.name);
  std::printf("%s: %u bytes, hash %016llx\n", name.c_str(), schema.bytes,
              static_cast<unsigned long long>(schema.hash));
  for (const ringmain::FieldSchema& f : schema.fields) {
    std::string more;
    if (f.unit != ringmain::Unit::none) more += ", in " + text(to_string(f.unit));
    if (!f.enumerators.empty()) more += ", one of " + text(f.enumerators);
    std::printf("%s.%s: %s, %u bytes at %u%s\n", name.c_str(), text(f.name).c_str(),
                text(to_string(f.kind)).c_str(), f.bytes, f.offset, more.c_str());
  }
}

/// The place of a virtual function in its class's table, as the C++ ABI of Linux writes a pointer
/// to one: the offset in bytes, plus one.
template <class Member>
unsigned slot_of(Member member) {
  std::uintptr_t words[2];
  static_assert(sizeof member == sizeof words);
  std::memcpy(words, &member, sizeof words);
  return static_cast<unsigned>((words[0] - 1) / sizeof(void*));
}

}  // namespace

int main() {
  std::printf("plugin: abi %u\n", ringmain::plugin::kAbi);
  std::printf("plugin Sink.hear: virtual function %u\n", slot_of(&Sink::hear));
  std::printf("plugin Sink.idle: virtual function %u\n", slot_of(&Sink::idle));
  std::printf("plugin Sink.close: virtual function %u\n", slot_of(&Sink::close));
  std::printf("plugin Bridge.close: virtual function %u\n", slot_of(&Bridge::close));
  ringmain::AllEvents::for_each([]<class E>(const E&) { describe_event<E>(); });
}
