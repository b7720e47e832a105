// Which event takes the place of another? A later one with the same key.
//
// A key is what `key(event)` returns. Its bytes are compared, so it has no pointers and no padding.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../engine/publish/key_table.hpp"

#include "event.hpp"

namespace ringmain {

/// Integers, enums, Name, and structs of them without padding, up to 64 bytes.
template <class K>
concept Key = std::is_trivially_copyable_v<K> && std::has_unique_object_representations_v<K> &&
                  sizeof(K) <= engine::KeyTable::kKeyBytesMax
              && !std::is_pointer_v<K> && !std::is_member_pointer_v<K> &&
              !std::same_as<K, std::string_view>;

/// A member of the event, or a function of it.
template <class F, class E>
concept KeyOf = std::copy_constructible<F> && std::invocable<const F&, const E&> &&
    Key<std::remove_cvref_t<std::invoke_result_t<const F&, const E&>>>;

namespace detail {

/// A key function with its type erased. Empty: no coalescing.
struct KeyWriter {
  std::uint32_t bytes = 0;
  /// Writes the key of the event at `event` to `to`, which is zeroed.
  std::function<void(const std::byte* event, std::byte* to)> write;
};

template <class E, KeyOf<E> F>
KeyWriter key_writer(F key) {
  using K = std::remove_cvref_t<std::invoke_result_t<const F&, const E&>>;
  return {sizeof(K), [key = std::move(key)](const std::byte* event, std::byte* to) {
            const K k = std::invoke(key, *std::launder(reinterpret_cast<const E*>(event)));
            std::memcpy(to, &k, sizeof k);
          }};
}

}  // namespace detail
}  // namespace ringmain
