# How can ThreadSanitizer check code that uses moodycamel's queue without a suppression file?
#
# ThreadSanitizer does not model stand-alone fences, by which the queue hands its blocks over. In a copy of
# the installed header, used by thread-sanitized builds only, the relaxed access beside each such fence
# becomes an acquire or a release one: six places, found by their text. A header in which any of them is
# found more or less often than expected is not the one these edits were tried with, and stops the
# configuration. Tried with version 1.0.3.
#
# As a script: cmake -DFROM=header -DTO=copy -P EditQueueForTsan.cmake

# One edit: `before` must occur `expected` times in the text named by `text_variable`.
function(_ringmain_edit text_variable where before after expected)
  set(text "${${text_variable}}")
  string(LENGTH "${text}" length_before)
  string(REPLACE "${before}" "" without "${text}")
  string(LENGTH "${without}" length_without)
  string(LENGTH "${before}" length_one)
  math(EXPR found "(${length_before} - ${length_without}) / ${length_one}")
  if(NOT found EQUAL expected)
    message(FATAL_ERROR
      "The ThreadSanitizer edit of ${where} expected ${expected} place(s) in ${FROM} and found ${found}: "
      "this version of concurrentqueue.h needs its edits looked at again in cmake/EditQueueForTsan.cmake.")
  endif()
  string(REPLACE "${before}" "${after}" text "${text}")
  set(${text_variable} "${text}" PARENT_SCOPE)
endfunction()

function(_ringmain_write_edited_queue FROM TO)
  file(READ "${FROM}" text)
  set(relaxed "std::memory_order_relaxed")
  set(acquire "std::memory_order_acquire")
  set(release "std::memory_order_release")
  _ringmain_edit(text "Block::is_empty, flags"
    "if (!emptyFlags[i].load(${relaxed}))" "if (!emptyFlags[i].load(${acquire}))" 1)
  _ringmain_edit(text "Block::is_empty, counter"
    "if (elementsCompletelyDequeued.load(${relaxed}) == BLOCK_SIZE)"
    "if (elementsCompletelyDequeued.load(${acquire}) == BLOCK_SIZE)" 1)
  _ringmain_edit(text "Block::set_many_empty"
    "emptyFlags[i + j].store(true, ${relaxed})" "emptyFlags[i + j].store(true, ${release})" 1)
  _ringmain_edit(text "dequeue and dequeue_bulk"
    "auto overcommit = this->dequeueOvercommit.load(${relaxed})"
    "auto overcommit = this->dequeueOvercommit.load(${acquire})" 3)
  set(standing "")
  if(EXISTS "${TO}")
    file(READ "${TO}" standing)
  endif()
  if(NOT standing STREQUAL text)  # an untouched copy makes nothing build again
    file(WRITE "${TO}" "${text}")
  endif()
endfunction()

# Puts an edited copy, at the same relative path, before the installed header.
function(ringmain_edit_queue_for_tsan)
  set(folder "${PROJECT_BINARY_DIR}/tsan-include")
  _ringmain_write_edited_queue("${concurrentqueue_INCLUDE_DIR}/${concurrentqueue_HEADER}"
    "${folder}/${concurrentqueue_HEADER}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    "${concurrentqueue_INCLUDE_DIR}/${concurrentqueue_HEADER}")
  set_target_properties(concurrentqueue::concurrentqueue PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${folder};${concurrentqueue_INCLUDE_DIR}")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  _ringmain_write_edited_queue("${FROM}" "${TO}")
endif()
