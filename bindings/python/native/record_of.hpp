// An event that is in no batch, as Python reads it.
#pragma once
#include <cstring>
#include <nanobind/nanobind.h>
#include <utility>

#include "bindings/python/native/batch.hpp"

namespace ringmain::python {

/// A copy; None of nullptr. With the GIL. Throws std::bad_alloc.
template <class E>
nb::object record_of(const E* event) {
  if (event == nullptr) return nb::none();
  const Schema& schema = ringmain::schema<E>();
  Record record;
  record.layout = &Layout::of(schema);
  record.own.resize(sizeof(E));
  std::memcpy(record.own.data(), event, sizeof(E));
  record.event = record.own.data();
  record.channel = describe(EventOf<E>{}).name;
  return nb::cast(std::move(record), nb::rv_policy::move);
}

}  // namespace ringmain::python
