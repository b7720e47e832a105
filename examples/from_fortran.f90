! How does a Fortran program publish and subscribe? By the same calls as in C, through the module ringmain.
!
!   from_fortran          four steps
!   from_fortran FOLDER   and they stay in a file there; then: ringmain post-mortem FOLDER
module hearing
  use ringmain
  implicit none

  type, bind(C) :: step_event
    integer(c_int64_t) :: step
    real(c_double) :: loss
  end type
  type, bind(C) :: note_event
    integer(c_int64_t) :: number
    character(kind=c_char) :: words(32)
  end type

contains

  subroutine add_up(user, heard) bind(C)
    type(c_ptr), value :: user
    type(ringmain_event), intent(in) :: heard
    real(c_double), pointer :: total
    type(step_event), pointer :: event

    call c_f_pointer(user, total)
    call c_f_pointer(heard%event, event)
    total = total + event%loss
  end subroutine

  ! Lets all go on but the note with number 13.
  integer(c_int32_t) function judge(user, heard) bind(C)
    type(c_ptr), value :: user
    type(ringmain_event), intent(in) :: heard
    type(note_event), pointer :: note
    integer(c_int32_t), pointer :: reason

    call c_f_pointer(heard%event, note)
    call c_f_pointer(user, reason)
    judge = 0
    if (note%number == 13) judge = reason
  end function

  ! Hears notes of every kind, and reads them by their fields.
  subroutine read_note(user, heard) bind(C)
    type(c_ptr), value :: user
    type(ringmain_event), intent(in) :: heard
    call check(ringmain_event_visit(heard, c_funloc(read_field), user))
  end subroutine

  integer(c_int) function read_field(user, field, value) bind(C)
    type(c_ptr), value :: user
    type(ringmain_field), intent(in) :: field
    type(ringmain_value), intent(in) :: value
    character(len=64), pointer :: read_so_far
    character(len=20) :: digits

    call c_f_pointer(user, read_so_far)
    if (value%kind == RINGMAIN_TEXT_FIELD) then
      read_so_far = trim(read_so_far)//' '//ringmain_string(field%name)//'='// &
        ringmain_text_at(value%text, value%text_bytes)
    else
      write (digits, '(i0)') value%i64
      read_so_far = trim(read_so_far)//' '//ringmain_string(field%name)//'='//digits
    end if
    read_field = 0
  end function

  ! Notes go by a publisher of their own; one is vetoed, and two are read by a pattern.
  subroutine write_notes(bus)
    type(c_ptr), intent(in) :: bus
    type(c_ptr) :: notes, publisher, judging, mailbox
    type(note_event), target :: note
    type(ringmain_publisher_options), target :: options
    type(ringmain_ledger) :: ledger
    type(ringmain_subscription_stats) :: stats
    type(ringmain_member) :: members(2)
    integer(c_int32_t), target :: reason
    character(len=64), target :: read_so_far
    integer(c_size_t) :: taken

    members(1) = ringmain_member('number', RINGMAIN_I64, RINGMAIN_UNIT_ID, &
      ringmain_offset(c_loc(note), c_loc(note%number)), 8)
    members(2) = ringmain_member('words', RINGMAIN_TEXT_FIELD, RINGMAIN_UNIT_NONE, &
      ringmain_offset(c_loc(note), c_loc(note%words)), 32)
    call check(ringmain_define_event(bus, 'my.note', c_sizeof(note), members, notes))
    reason = ringmain_name('unlucky', 7_c_size_t)
    call check(ringmain_subscribe_inline(notes, c_funloc(judge), c_loc(reason), c_null_funptr, &
      c_null_ptr, judging))
    call check(ringmain_mailbox_open_pattern(bus, 'my.*', c_null_ptr, mailbox))
    options%capacity_events = 16
    options%source_time = 1
    call check(ringmain_publisher_open(notes, c_loc(options), publisher))

    note%number = 12
    call check(ringmain_set_text(note%words, 'a dozen'))
    call check(ringmain_publisher_publish_at(publisher, c_loc(note), c_sizeof(note), 1200_c_int64_t))
    note%number = 13
    if (ringmain_publisher_publish_at(publisher, c_loc(note), c_sizeof(note), 1300_c_int64_t) &
      /= RINGMAIN_VETOED) stop 7
    if (index(ringmain_last_error(), ringmain_name_text(reason)) == 0) stop 8
    note%number = 14
    call check(ringmain_set_text(note%words, 'more than thirty-one bytes of text'))
    if (ringmain_text(note%words) /= 'more than thirty-one bytes of ') stop 9
    call check(ringmain_publisher_publish_at(publisher, c_loc(note), c_sizeof(note), 1400_c_int64_t))

    call check(ringmain_flush(bus, 10000000000_c_int64_t))
    read_so_far = ''
    call check(ringmain_mailbox_drain(mailbox, c_funloc(read_note), c_loc(read_so_far), &
      100_c_size_t, taken))
    if (taken /= 2) stop 10
    print '(2a)', 'notes:', trim(read_so_far)
    if (read_so_far(:37) /= ' number=12 words=a dozen number=14 wo') stop 11
    call check(ringmain_publisher_ledger(publisher, ledger))
    if (ledger%offered /= 3 .or. ledger%dropped /= 1) stop 12
    call check(ringmain_stats_of_subscription(judging, stats))
    if (stats%delivered /= 3) stop 13
    call ringmain_publisher_close(publisher)
    call ringmain_mailbox_close(mailbox)
    call ringmain_subscription_free(judging)
  end subroutine

  subroutine check(code)
    integer(c_int32_t), intent(in) :: code
    if (code == RINGMAIN_OK) return
    print '(i0, 2a)', code, ': ', ringmain_last_error()
    stop 1
  end subroutine

end module

program from_fortran
  use hearing
  implicit none

  type(c_ptr) :: bus, steps, adding, mailbox
  type(step_event), target :: event, taken
  type(ringmain_event) :: heard
  type(ringmain_channel_stats) :: stats
  real(c_double), target :: total = 0
  type(ringmain_member) :: members(2)
  type(c_ptr) :: recording = c_null_ptr
  character(len=4096) :: folder
  integer :: i, count

  members(1) = ringmain_member('step', RINGMAIN_I64, RINGMAIN_UNIT_ID, &
    ringmain_offset(c_loc(event), c_loc(event%step)), 8)
  members(2) = ringmain_member('loss', RINGMAIN_F64, RINGMAIN_UNIT_NONE, &
    ringmain_offset(c_loc(event), c_loc(event%loss)), 8)

  if (ringmain_c_abi_of_library() /= RINGMAIN_C_ABI) stop 2
  call check(ringmain_open_process(bus))
  call check(ringmain_define_event(bus, 'my.step', c_sizeof(event), members, steps))
  call check(ringmain_subscribe(steps, c_funloc(add_up), c_loc(total), c_null_funptr, &
    c_null_ptr, adding))
  call check(ringmain_mailbox_open(steps, c_null_ptr, mailbox))
  call get_command_argument(1, folder)
  if (folder /= '') call check(ringmain_record(bus, 'my.>', recording, folder))
  do i = 1, 4
    event = step_event(i, 1.0_c_double / i)
    call check(ringmain_publish(steps, c_loc(event), c_sizeof(event)))
  end do
  call check(ringmain_flush(bus, -1_c_int64_t))
  call check(ringmain_unsubscribe(adding, -1_c_int64_t))
  call ringmain_subscription_free(adding)

  count = 0
  do while (ringmain_mailbox_take(mailbox, c_loc(taken), c_sizeof(taken), heard) == RINGMAIN_OK)
    count = count + 1
    if (taken%step /= count .or. heard%sequence /= count) stop 3
  end do
  call ringmain_mailbox_close(mailbox)
  if (folder /= '') print '(3a)', 'ringmain post-mortem ', ringmain_recording_path(recording), &
    ringmain_recording_complaint(recording) ! the one or the other
  call ringmain_recording_close(recording)
  call check(ringmain_stats_of_channel(steps, stats))
  print '(a, f5.3, a, i0, a)', 'losses add up to ', total, ', ', stats%delivered, ' heard'

  call write_notes(bus)

  ! A mistake is reported in one sentence.
  if (ringmain_publish(steps, c_loc(event), 3_c_size_t) /= RINGMAIN_REFUSED) stop 4
  if (index(ringmain_last_error(), 'sizeof the event') == 0) stop 5
  call check(ringmain_close(bus, -1_c_int64_t))
  if (count /= 4 .or. abs(total - 25.0_c_double / 12) > 1e-12_c_double) stop 6
end program
