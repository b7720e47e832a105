// Which events does ringmain describe in C++? Python knows their fields before the first of them is
// published.
#include <cstring>
#include <type_traits>
#include <utility>

#include "events/all.hpp"

#include "bindings/python/native/channel.hpp"

namespace ringmain::python {

std::vector<const Schema*> described_events() {
  std::vector<const Schema*> all;
  AllEvents::for_each([&all](const auto& event) {
    using Type = std::remove_cvref_t<decltype(event)>;
    const Schema& schema = ringmain::schema<Type>();
    // A field that a Python caller leaves out reads as in C++, where not every default is 0.
    std::vector<std::byte> bytes(sizeof event);
    std::memcpy(bytes.data(), &event, sizeof event);
    Layout::of(schema).set_initial(std::move(bytes));
    all.push_back(&schema);
  });
  return all;
}

}  // namespace ringmain::python
