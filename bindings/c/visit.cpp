// How does C read an event field by field? By C++'s visitor, each value widened to one struct.
#include <concepts>
#include <cstddef>
#include <string_view>

#include "bus/fields.hpp"

#include "bindings/c/handles.hpp"

using namespace ringmain::c;  // NOLINT(google-build-using-namespace): this is its face

namespace {

void set_text(ringmain_value& to, std::string_view text) {
  to.text = text.data();
  to.text_bytes = text.size();
}

ringmain_value value_of(const ringmain::FieldView& field) {
  ringmain_value made{};
  made.bytes = sizeof made;
  field.visit([&](auto value) {
    using T = decltype(value);
    if constexpr (std::same_as<T, std::uint64_t>) {
      made.kind = RINGMAIN_U64;
      made.u64 = value;
    } else if constexpr (std::same_as<T, std::int64_t>) {
      made.kind = RINGMAIN_I64;
      made.i64 = value;
    } else if constexpr (std::floating_point<T>) {
      made.kind = RINGMAIN_F64;
      made.f64 = static_cast<double>(value);
    } else if constexpr (std::same_as<T, bool>) {
      made.kind = RINGMAIN_BOOL;
      made.u64 = value ? 1 : 0;
    } else if constexpr (std::same_as<T, ringmain::Enumerator>) {
      made.kind = RINGMAIN_ENUM;
      made.u64 = value.value;
      if (value.word) set_text(made, *value.word);
    } else {
      made.kind = RINGMAIN_TEXT;
      set_text(made, value);
      made.cut = field.cut() ? 1 : 0;
    }
  });
  return made;
}

}  // namespace

extern "C" {

ringmain_code ringmain_event_visit(const ringmain_event* event, ringmain_visit_fn visit,
                                   void* user) {
  return guarded([&] {
    if (event == nullptr || event->schema == nullptr || event->event == nullptr)
      return fail(RINGMAIN_REFUSED, "event is NULL, or was not heard; give what a callback got");
    if (visit == nullptr) return fail(RINGMAIN_REFUSED, "visit is NULL; give a function");
    const auto& schema = *static_cast<const ringmain::Schema*>(event->schema);
    for (const ringmain::FieldView field :
         ringmain::FieldsView(schema, static_cast<const std::byte*>(event->event))) {
      const ringmain_field described = field_of(field.schema());
      const ringmain_value value = value_of(field);
      if (visit(user, &described, &value) != 0) break;
    }
    return ringmain_code{RINGMAIN_OK};
  });
}

const char* ringmain_unit_name(uint32_t unit) {
  // Literals of to_string(), which end with a zero.
  return unit <= RINGMAIN_UNIT_ID ? to_string(static_cast<ringmain::Unit>(unit)).data() : "";
}

}  // extern "C"
