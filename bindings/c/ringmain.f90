! How is ringmain used from Fortran? Compile this module with your compiler and link libringmain:
!
!   use ringmain
!   code = ringmain_open_process(bus)
!   code = ringmain_define_event(bus, 'train.step', c_sizeof(step), fields, steps)
!   code = ringmain_publish(steps, c_loc(step), c_sizeof(step))
!
! ringmain.h says what each call does; the names are the same. Strings that C reads end with
! c_null_char; an event is a bind(C) type, for which c_loc wants the target attribute.
module ringmain
  use, intrinsic :: iso_c_binding
  implicit none
  public

  integer(c_int32_t), parameter :: RINGMAIN_C_ABI = 1

  integer(c_int32_t), parameter :: RINGMAIN_OK = 0, RINGMAIN_UNHEARD = 1, RINGMAIN_FULL = 2, &
    RINGMAIN_CLOSED = 3, RINGMAIN_WOULD_DEADLOCK = 4, RINGMAIN_NO_MEMORY = 5, &
    RINGMAIN_TOO_DEEP = 6, RINGMAIN_VETOED = 7, RINGMAIN_FORKED = 8, RINGMAIN_REFUSED = 32, &
    RINGMAIN_CONFLICT = 33, RINGMAIN_NOT_FOUND = 34, RINGMAIN_SYSTEM = 35, &
    RINGMAIN_DEFERRED = 36, RINGMAIN_TIMEOUT = 37, RINGMAIN_NOT_ATTACHED = 38, RINGMAIN_EMPTY = 39

  integer(c_int32_t), parameter :: RINGMAIN_U8 = 0, RINGMAIN_U16 = 1, RINGMAIN_U32 = 2, &
    RINGMAIN_U64 = 3, RINGMAIN_I8 = 4, RINGMAIN_I16 = 5, RINGMAIN_I32 = 6, RINGMAIN_I64 = 7, &
    RINGMAIN_F32 = 8, RINGMAIN_F64 = 9, RINGMAIN_BOOL = 10, RINGMAIN_ENUM = 11, &
    RINGMAIN_NAME_FIELD = 12, RINGMAIN_TEXT_FIELD = 13

  integer(c_int32_t), parameter :: RINGMAIN_UNIT_NONE = 0, RINGMAIN_UNIT_BYTES = 1, &
    RINGMAIN_UNIT_NS = 2, RINGMAIN_UNIT_ADDRESS = 3, RINGMAIN_UNIT_COUNT = 4, &
    RINGMAIN_UNIT_DEVICE = 5, RINGMAIN_UNIT_STREAM = 6, RINGMAIN_UNIT_ID = 7

  integer(c_int32_t), parameter :: RINGMAIN_DROP_NEWEST = 0, RINGMAIN_DROP_OLDEST = 1, &
    RINGMAIN_BLOCK = 2
  integer(c_int32_t), parameter :: RINGMAIN_TIME_OF_WORKER = 0, RINGMAIN_TIME_OF_PUBLISHER = 1, &
    RINGMAIN_TIME_OF_SOURCE = 2
  integer(c_int32_t), parameter :: RINGMAIN_SHARED = 0, RINGMAIN_ISOLATED = 1, &
    RINGMAIN_OWN_THREAD = 2

  ! A member of an event: its place is ringmain_offset(c_loc(event), c_loc(event%member)).
  type :: ringmain_member
    character(len=64) :: name = ''
    integer(c_int32_t) :: type = RINGMAIN_I32
    integer(c_int32_t) :: unit = RINGMAIN_UNIT_NONE
    integer(c_int32_t) :: offset = 0
    integer(c_int32_t) :: size = 4
  end type

  type, bind(C) :: ringmain_field
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: enumerators = c_null_ptr
    integer(c_int32_t) :: type = 0, unit = 0, offset = 0, size = 0
  end type
  type, bind(C) :: ringmain_event_type
    integer(c_int32_t) :: bytes = 32
    integer(c_int32_t) :: event_bytes = 0
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: fields = c_null_ptr
    integer(c_int32_t) :: fields_count = 0
    integer(c_int32_t) :: field_bytes = 32
  end type
  type, bind(C) :: ringmain_event
    integer(c_int32_t) :: bytes = 56
    integer(c_int32_t) :: event_bytes = 0
    type(c_ptr) :: event = c_null_ptr
    type(c_ptr) :: channel = c_null_ptr
    integer(c_int64_t) :: time_ns = 0, sequence = 0
    integer(c_int32_t) :: publisher = 0, time_from = 0
    type(c_ptr) :: schema = c_null_ptr
  end type
  ! Options are passed by c_loc, of a variable with the target attribute; c_null_ptr: all defaults.
  ! Names and worker_cpus: c_loc of text that ends with c_null_char, or c_null_ptr.
  type, bind(C) :: ringmain_bus_options
    integer(c_int32_t) :: bytes = 32
    integer(c_int32_t) :: workers = 0
    type(c_ptr) :: name = c_null_ptr, worker_cpus = c_null_ptr
    integer(c_int32_t) :: worker_nice = 0, realtime_us_max = 0
  end type
  type, bind(C) :: ringmain_publisher_options
    integer(c_int32_t) :: bytes = 32
    integer(c_int32_t) :: capacity_events = 0, overflow = RINGMAIN_DROP_NEWEST, block_us_max = 0, &
      ring = 0, realtime = 0, source_time = 0, unused = 0
  end type
  type, bind(C) :: ringmain_subscribe_options
    integer(c_int32_t) :: bytes = 40
    integer(c_int32_t) :: served = RINGMAIN_SHARED
    type(c_ptr) :: name = c_null_ptr
    integer(c_int32_t) :: priority = 0, stamped = 0, queue_events = 0, &
      overflow = RINGMAIN_DROP_NEWEST
    integer(c_int64_t) :: budget_us = 0
  end type
  type, bind(C) :: ringmain_ledger
    integer(c_int32_t) :: bytes = 40, unused = 0
    integer(c_int64_t) :: offered = 0, dropped = 0, delivered = 0, in_flight = 0
  end type
  type, bind(C) :: ringmain_subscription_stats
    integer(c_int32_t) :: bytes = 64, unused = 0
    integer(c_int64_t) :: offered = 0, delivered = 0, threw = 0, skipped = 0, dropped = 0, &
      pending = 0, slow = 0
  end type
  ! A field's value; text is read by ringmain_text_at(value%text, value%text_bytes).
  type, bind(C) :: ringmain_value
    integer(c_int32_t) :: bytes = 56, kind = 0
    integer(c_int64_t) :: u64 = 0, i64 = 0
    real(c_double) :: f64 = 0
    type(c_ptr) :: text = c_null_ptr
    integer(c_int64_t) :: text_bytes = 0
    integer(c_int32_t) :: cut = 0, unused = 0
  end type
  type, bind(C) :: ringmain_step_place
    integer(c_int32_t) :: bytes = 24
    integer(c_int32_t) :: phase = 0
    integer(c_int64_t) :: step = 0
    integer(c_int32_t) :: micro_batch = 0, unused = 0
  end type
  type, bind(C) :: ringmain_channel_stats
    integer(c_int32_t) :: bytes = 96
    integer(c_int32_t) :: subscribers = 0
    integer(c_int64_t) :: offered = 0, accepted = 0, full = 0, closed = 0, no_memory = 0, &
      too_deep = 0, vetoed = 0, delivered = 0, evicted = 0, discarded = 0, pending = 0
  end type

  ! folder: c_null_ptr, or c_loc of text that ends with c_null_char.
  type, bind(C) :: ringmain_record_options
    integer(c_int32_t) :: bytes = 32
    integer(c_int32_t) :: files_kept = 0
    type(c_ptr) :: folder = c_null_ptr
    integer(c_int64_t) :: file_bytes = 0, ring_bytes = 0
  end type

  interface
    integer(c_int32_t) function ringmain_c_abi_of_library() bind(C, name='ringmain_c_abi')
      import :: c_int32_t
    end function
    integer(c_int32_t) function ringmain_open_process(bus) bind(C)
      import :: c_int32_t, c_ptr
      type(c_ptr), intent(inout) :: bus
    end function
    ! options: c_null_ptr, or c_loc of what ringmain.h calls ringmain_bus_options.
    integer(c_int32_t) function ringmain_open(options, bus) bind(C)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: options
      type(c_ptr), intent(inout) :: bus
    end function
    integer(c_int32_t) function ringmain_close(bus, limit_ns) bind(C)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: bus
      integer(c_int64_t), value :: limit_ns
    end function
    integer(c_int32_t) function ringmain_flush(bus, limit_ns) bind(C)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: bus
      integer(c_int64_t), value :: limit_ns
    end function
    integer(c_int32_t) function ringmain_define(bus, event, channel) bind(C)
      import :: c_int32_t, c_ptr, ringmain_event_type
      type(c_ptr), value :: bus
      type(ringmain_event_type), intent(in) :: event
      type(c_ptr), intent(inout) :: channel
    end function
    integer(c_int32_t) function ringmain_find(bus, name, channel) bind(C)
      import :: c_char, c_int32_t, c_ptr
      type(c_ptr), value :: bus
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), intent(inout) :: channel
    end function
    integer(c_int32_t) function ringmain_publish(channel, event, event_bytes) bind(C)
      import :: c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: channel, event
      integer(c_size_t), value :: event_bytes
    end function
    integer(c_int) function ringmain_wanted(channel) bind(C)
      import :: c_int, c_ptr
      type(c_ptr), value :: channel
    end function
    integer(c_int64_t) function ringmain_new_op_id() bind(C)
      import :: c_int64_t
    end function
    integer(c_int32_t) function ringmain_name(text, bytes) bind(C)
      import :: c_char, c_int32_t, c_size_t
      character(kind=c_char), intent(in) :: text(*)
      integer(c_size_t), value :: bytes
    end function
    ! hear: c_funloc of a bind(C) subroutine (user, event) with type(c_ptr), value :: user and
    ! type(ringmain_event), intent(in) :: event. destroy: c_null_funptr, or of one (user).
    integer(c_int32_t) function ringmain_subscribe(channel, hear, user, destroy, options, &
        subscription) bind(C)
      import :: c_funptr, c_int32_t, c_ptr
      type(c_ptr), value :: channel, user, options
      type(c_funptr), value :: hear, destroy
      type(c_ptr), intent(inout) :: subscription
    end function
    integer(c_int32_t) function ringmain_unsubscribe(subscription, limit_ns) bind(C)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: subscription
      integer(c_int64_t), value :: limit_ns
    end function
    subroutine ringmain_subscription_free(subscription) bind(C)
      import :: c_ptr
      type(c_ptr), value :: subscription
    end subroutine
    integer(c_int32_t) function ringmain_mailbox_open(channel, options, mailbox) bind(C)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: channel, options
      type(c_ptr), intent(inout) :: mailbox
    end function
    integer(c_int32_t) function ringmain_mailbox_take(mailbox, event, event_bytes, heard) bind(C)
      import :: c_int32_t, c_ptr, c_size_t, ringmain_event
      type(c_ptr), value :: mailbox, event
      integer(c_size_t), value :: event_bytes
      type(ringmain_event), intent(inout) :: heard
    end function
    integer(c_int32_t) function ringmain_mailbox_wait(mailbox, limit_ns) bind(C)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: mailbox
      integer(c_int64_t), value :: limit_ns
    end function
    subroutine ringmain_mailbox_close(mailbox) bind(C)
      import :: c_ptr
      type(c_ptr), value :: mailbox
    end subroutine
    integer(c_int32_t) function ringmain_steps_open(bus, steps) bind(C)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: bus
      type(c_ptr), intent(inout) :: steps
    end function
    integer(c_int32_t) function ringmain_step_begin(steps, number) bind(C)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: steps
      integer(c_int64_t), value :: number
    end function
    integer(c_int32_t) function ringmain_phase_begin(steps, name) bind(C)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: steps
      integer(c_int32_t), value :: name
    end function
    integer(c_int32_t) function ringmain_micro_batch_begin(steps, number) bind(C)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: steps
      integer(c_int32_t), value :: number
    end function
    integer(c_int32_t) function ringmain_step_end(steps) bind(C)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: steps
    end function
    subroutine ringmain_steps_close(steps) bind(C)
      import :: c_ptr
      type(c_ptr), value :: steps
    end subroutine
    integer(c_int32_t) function ringmain_step_follow_open(bus, follow) bind(C)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: bus
      type(c_ptr), intent(inout) :: follow
    end function
    integer(c_int32_t) function ringmain_step_of(follow, event, place) bind(C)
      import :: c_int32_t, c_ptr, ringmain_step_place
      type(c_ptr), value :: follow, event
      type(ringmain_step_place), intent(inout) :: place
    end function
    subroutine ringmain_step_follow_close(follow) bind(C)
      import :: c_ptr
      type(c_ptr), value :: follow
    end subroutine
    integer(c_int32_t) function ringmain_record_in(bus, patterns, options, recording) &
        bind(C, name='ringmain_record')
      import :: c_int32_t, c_ptr, ringmain_record_options
      type(c_ptr), value :: bus, patterns
      type(ringmain_record_options), intent(in) :: options
      type(c_ptr), intent(inout) :: recording
    end function
    type(c_ptr) function ringmain_recording_path_at(recording) bind(C, name='ringmain_recording_path')
      import :: c_ptr
      type(c_ptr), value :: recording
    end function
    type(c_ptr) function ringmain_recording_complaint_at(recording) &
        bind(C, name='ringmain_recording_complaint')
      import :: c_ptr
      type(c_ptr), value :: recording
    end function
    subroutine ringmain_recording_close(recording) bind(C)
      import :: c_ptr
      type(c_ptr), value :: recording
    end subroutine
    integer(c_int32_t) function ringmain_stats_of_channel(channel, stats) bind(C)
      import :: c_int32_t, c_ptr, ringmain_channel_stats
      type(c_ptr), value :: channel
      type(ringmain_channel_stats), intent(inout) :: stats
    end function
    type(c_ptr) function ringmain_version_at() bind(C, name='ringmain_version')
      import :: c_ptr
    end function
    type(c_ptr) function ringmain_code_name_at(code) bind(C, name='ringmain_code_name')
      import :: c_int32_t, c_ptr
      integer(c_int32_t), value :: code
    end function
    integer(c_int32_t) function ringmain_channel_field(channel, number, field) bind(C)
      import :: c_int32_t, c_ptr, ringmain_field
      type(c_ptr), value :: channel
      integer(c_int32_t), value :: number ! from 0
      type(ringmain_field), intent(inout) :: field
    end function
    integer(c_int32_t) function ringmain_channel_event_bytes(channel) bind(C)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: channel
    end function
    type(c_ptr) function ringmain_name_text_at(name, bytes) bind(C, name='ringmain_name_text')
      import :: c_int32_t, c_ptr, c_size_t
      integer(c_int32_t), value :: name
      integer(c_size_t), intent(out) :: bytes
    end function
    ! field: c_loc of a RINGMAIN_TEXT_FIELD member, character(kind=c_char) :: member(8, 16 … 1024).
    integer(c_int32_t) function ringmain_set_text_of(field, field_bytes, text, &
        bytes) bind(C, name='ringmain_set_text')
      import :: c_char, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: field
      integer(c_size_t), value :: field_bytes, bytes
      character(kind=c_char), intent(in) :: text(*)
    end function
    type(c_ptr) function ringmain_text_of(field, field_bytes, bytes) bind(C, name='ringmain_text')
      import :: c_ptr, c_size_t
      type(c_ptr), value :: field
      integer(c_size_t), value :: field_bytes
      integer(c_size_t), intent(out) :: bytes
    end function
    integer(c_int32_t) function ringmain_publisher_open(channel, options, publisher) bind(C)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: channel, options
      type(c_ptr), intent(inout) :: publisher
    end function
    integer(c_int32_t) function ringmain_set_thread_lanes(channel, options) bind(C)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: channel, options
    end function
    integer(c_int32_t) function ringmain_publisher_publish(publisher, event, event_bytes) bind(C)
      import :: c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: publisher, event
      integer(c_size_t), value :: event_bytes
    end function
    integer(c_int32_t) function ringmain_publisher_publish_at(publisher, event, event_bytes, &
        time_ns) bind(C)
      import :: c_int32_t, c_int64_t, c_ptr, c_size_t
      type(c_ptr), value :: publisher, event
      integer(c_size_t), value :: event_bytes
      integer(c_int64_t), value :: time_ns
    end function
    integer(c_int32_t) function ringmain_publisher_ledger(publisher, ledger) bind(C)
      import :: c_int32_t, c_ptr, ringmain_ledger
      type(c_ptr), value :: publisher
      type(ringmain_ledger), intent(inout) :: ledger
    end function
    subroutine ringmain_publisher_close(publisher) bind(C)
      import :: c_ptr
      type(c_ptr), value :: publisher
    end subroutine
    integer(c_int32_t) function ringmain_event_field(event, number, field) bind(C)
      import :: c_int32_t, ringmain_event, ringmain_field
      type(ringmain_event), intent(in) :: event
      integer(c_int32_t), value :: number ! from 0
      type(ringmain_field), intent(inout) :: field
    end function
    ! visit: c_funloc of a bind(C) integer(c_int) function (user, field, value) with type(c_ptr),
    ! value :: user, type(ringmain_field), intent(in) :: field, type(ringmain_value), intent(in) :: value;
    ! 0 goes on.
    integer(c_int32_t) function ringmain_event_visit(event, visit, user) bind(C)
      import :: c_funptr, c_int32_t, c_ptr, ringmain_event
      type(ringmain_event), intent(in) :: event
      type(c_funptr), value :: visit
      type(c_ptr), value :: user
    end function
    type(c_ptr) function ringmain_unit_name_at(unit) bind(C, name='ringmain_unit_name')
      import :: c_int32_t, c_ptr
      integer(c_int32_t), value :: unit
    end function
    integer(c_int) function ringmain_in_subscriber() bind(C)
      import :: c_int
    end function
    ! pattern: text that ends with c_null_char, "my.*". hear, destroy: as of ringmain_subscribe.
    integer(c_int32_t) function ringmain_subscribe_pattern_in(bus, pattern, hear, user, &
        destroy, options, subscription) bind(C, name='ringmain_subscribe_pattern')
      import :: c_char, c_funptr, c_int32_t, c_ptr
      type(c_ptr), value :: bus, user, options
      character(kind=c_char), intent(in) :: pattern(*)
      type(c_funptr), value :: hear, destroy
      type(c_ptr), intent(inout) :: subscription
    end function
    ! judge: c_funloc of a bind(C) integer(c_int32_t) function (user, event), with arguments as of
    ! hear; 0 lets the event go on, a name (ringmain_name) vetoes it and says why. Called in the
    ! publishing thread, by as many threads at once as publish.
    integer(c_int32_t) function ringmain_subscribe_inline(channel, judge, user, destroy, &
        options, subscription) bind(C)
      import :: c_funptr, c_int32_t, c_ptr
      type(c_ptr), value :: channel, user, options
      type(c_funptr), value :: judge, destroy
      type(c_ptr), intent(inout) :: subscription
    end function
    integer(c_int32_t) function ringmain_mailbox_open_pattern_in(bus, pattern, options, &
        mailbox) bind(C, name='ringmain_mailbox_open_pattern')
      import :: c_char, c_int32_t, c_ptr
      type(c_ptr), value :: bus, options
      character(kind=c_char), intent(in) :: pattern(*)
      type(c_ptr), intent(inout) :: mailbox
    end function
    integer(c_int32_t) function ringmain_mailbox_drain(mailbox, hear, user, events_max, &
        taken) bind(C)
      import :: c_funptr, c_int32_t, c_ptr, c_size_t
      type(c_ptr), value :: mailbox, user
      type(c_funptr), value :: hear
      integer(c_size_t), value :: events_max
      integer(c_size_t), intent(out) :: taken
    end function
    integer(c_int) function ringmain_mailbox_fd(mailbox) bind(C)
      import :: c_int, c_ptr
      type(c_ptr), value :: mailbox
    end function
    integer(c_int32_t) function ringmain_stats_of_subscription(subscription, stats) bind(C)
      import :: c_int32_t, c_ptr, ringmain_subscription_stats
      type(c_ptr), value :: subscription
      type(ringmain_subscription_stats), intent(inout) :: stats
    end function
    integer(c_int32_t) function ringmain_stats_of_mailbox(mailbox, stats) bind(C)
      import :: c_int32_t, c_ptr, ringmain_subscription_stats
      type(c_ptr), value :: mailbox
      type(ringmain_subscription_stats), intent(inout) :: stats
    end function
    type(c_ptr) function ringmain_last_error_at() bind(C, name='ringmain_last_error')
      import :: c_ptr
    end function
    integer(c_size_t) function ringmain_strlen(text) bind(C, name='strlen')
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
    end function
  end interface

contains

  ! Where a member lies in its event: of c_loc(event) and c_loc(event%member).
  integer(c_int32_t) function ringmain_offset(event, member)
    type(c_ptr), intent(in) :: event, member
    ringmain_offset = int(transfer(member, 0_c_intptr_t) - transfer(event, 0_c_intptr_t), c_int32_t)
  end function

  ! As ringmain_define, for Fortran's own strings.
  integer(c_int32_t) function ringmain_define_event(bus, name, event_bytes, members, channel)
    type(c_ptr), intent(in) :: bus
    character(len=*), intent(in) :: name
    integer(c_size_t), intent(in) :: event_bytes
    type(ringmain_member), intent(in) :: members(:)
    type(c_ptr), intent(inout) :: channel
    character(kind=c_char), target :: names(65, size(members))
    character(kind=c_char), target :: own(len_trim(name) + 1)
    type(ringmain_field), target :: fields(size(members))
    type(ringmain_event_type) :: event
    integer :: i

    call to_c(name, own)
    do i = 1, size(members)
      call to_c(members(i)%name, names(:, i))
      fields(i)%name = c_loc(names(1, i))
      fields(i)%type = members(i)%type
      fields(i)%unit = members(i)%unit
      fields(i)%offset = members(i)%offset
      fields(i)%size = members(i)%size
    end do
    event%bytes = int(c_sizeof(event), c_int32_t)
    event%event_bytes = int(event_bytes, c_int32_t)
    event%name = c_loc(own)
    event%fields_count = size(members)
    if (size(members) > 0) event%fields = c_loc(fields)
    ringmain_define_event = ringmain_define(bus, event, channel)
  end function

  ! As C's, for Fortran's own strings: 'collective.>,train.*'. folder: as RINGMAIN_FLIGHT_DIR.
  integer(c_int32_t) function ringmain_record(bus, patterns, recording, folder, options)
    type(c_ptr), intent(in) :: bus
    character(len=*), intent(in) :: patterns
    type(c_ptr), intent(inout) :: recording
    character(len=*), intent(in), optional :: folder
    type(ringmain_record_options), intent(in), optional :: options
    character(kind=c_char), target :: words(len_trim(patterns) + 1)
    character(kind=c_char), target, allocatable :: place(:)
    type(ringmain_record_options) :: known

    call to_c(patterns, words)
    if (present(options)) known = options
    if (present(folder)) then
      allocate (place(len_trim(folder) + 1))
      call to_c(folder, place)
      known%folder = c_loc(place)
    end if
    ringmain_record = ringmain_record_in(bus, c_loc(words), known, recording)
  end function

  ! The file; '': the record is in the process's memory only, and the complaint says why.
  function ringmain_recording_path(recording) result(path)
    type(c_ptr), intent(in) :: recording
    character(len=:), allocatable :: path
    path = from_c(ringmain_recording_path_at(recording))
  end function
  function ringmain_recording_complaint(recording) result(sentence)
    type(c_ptr), intent(in) :: recording
    character(len=:), allocatable :: sentence
    sentence = from_c(ringmain_recording_complaint_at(recording))
  end function

  ! As C's, for Fortran's own strings: 'my.*'.
  integer(c_int32_t) function ringmain_subscribe_pattern(bus, pattern, hear, user, destroy, &
      options, subscription)
    type(c_ptr), intent(in) :: bus, user, options
    character(len=*), intent(in) :: pattern
    type(c_funptr), intent(in) :: hear, destroy
    type(c_ptr), intent(inout) :: subscription
    ringmain_subscribe_pattern = ringmain_subscribe_pattern_in(bus, trim(pattern)//c_null_char, &
      hear, user, destroy, options, subscription)
  end function
  integer(c_int32_t) function ringmain_mailbox_open_pattern(bus, pattern, options, mailbox)
    type(c_ptr), intent(in) :: bus, options
    character(len=*), intent(in) :: pattern
    type(c_ptr), intent(inout) :: mailbox
    ringmain_mailbox_open_pattern = ringmain_mailbox_open_pattern_in(bus, &
      trim(pattern)//c_null_char, options, mailbox)
  end function

  ! Writes text, without the blanks at its end, into a RINGMAIN_TEXT_FIELD member of an event:
  ! character(kind=c_char) :: member(32). What is too long is cut.
  integer(c_int32_t) function ringmain_set_text(member, text)
    character(kind=c_char), intent(inout), target :: member(:)
    character(len=*), intent(in) :: text
    ringmain_set_text = ringmain_set_text_of(c_loc(member), size(member, kind=c_size_t), text, &
      int(len_trim(text), c_size_t))
  end function
  function ringmain_text(member) result(text)
    character(kind=c_char), intent(in), target :: member(:)
    character(len=:), allocatable :: text
    type(c_ptr) :: at
    integer(c_size_t) :: bytes
    at = ringmain_text_of(c_loc(member), size(member, kind=c_size_t), bytes)
    text = ringmain_text_at(at, int(bytes, c_int64_t))
  end function
  function ringmain_name_text(name) result(text)
    integer(c_int32_t), intent(in) :: name
    character(len=:), allocatable :: text
    type(c_ptr) :: at
    integer(c_size_t) :: bytes
    at = ringmain_name_text_at(name, bytes)
    text = ringmain_text_at(at, int(bytes, c_int64_t))
  end function
  ! So many bytes of text at a place that C has given; '' of c_null_ptr.
  function ringmain_text_at(at, bytes) result(copied)
    type(c_ptr), intent(in) :: at
    integer(c_int64_t), intent(in) :: bytes
    character(len=:), allocatable :: copied
    character(kind=c_char), pointer :: text(:)
    integer(c_int64_t) :: i

    if (.not. c_associated(at)) then
      copied = ''
      return
    end if
    call c_f_pointer(at, text, [bytes])
    allocate (character(len=bytes) :: copied)
    do i = 1, bytes
      copied(i:i) = text(i)
    end do
  end function
  ! Of a field, a channel: text that ends with a zero; '' of c_null_ptr.
  function ringmain_string(at) result(text)
    type(c_ptr), intent(in) :: at
    character(len=:), allocatable :: text
    if (c_associated(at)) then
      text = from_c(at)
    else
      text = ''
    end if
  end function

  function ringmain_version() result(version)
    character(len=:), allocatable :: version
    version = from_c(ringmain_version_at())
  end function
  function ringmain_code_name(code) result(name)
    integer(c_int32_t), intent(in) :: code
    character(len=:), allocatable :: name
    name = from_c(ringmain_code_name_at(code))
  end function
  function ringmain_unit_name(unit) result(name)
    integer(c_int32_t), intent(in) :: unit
    character(len=:), allocatable :: name
    name = from_c(ringmain_unit_name_at(unit))
  end function

  ! The sentence of this thread's last call that failed.
  function ringmain_last_error() result(sentence)
    character(len=:), allocatable :: sentence
    sentence = from_c(ringmain_last_error_at())
  end function

  function from_c(at) result(copied)
    type(c_ptr), intent(in) :: at
    character(len=:), allocatable :: copied
    character(kind=c_char), pointer :: text(:)
    integer :: i

    call c_f_pointer(at, text, [ringmain_strlen(at)])
    allocate (character(len=size(text)) :: copied)
    do i = 1, size(text)
      copied(i:i) = text(i)
    end do
  end function

  subroutine to_c(text, to)
    character(len=*), intent(in) :: text
    character(kind=c_char), intent(out) :: to(:)
    integer :: i, n

    n = min(len_trim(text), size(to) - 1)
    do i = 1, n
      to(i) = text(i:i)
    end do
    to(n + 1) = c_null_char
  end subroutine

end module
