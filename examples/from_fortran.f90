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

  ! A mistake is reported in one sentence.
  if (ringmain_publish(steps, c_loc(event), 3_c_size_t) /= RINGMAIN_REFUSED) stop 4
  if (index(ringmain_last_error(), 'sizeof the event') == 0) stop 5
  call check(ringmain_close(bus, -1_c_int64_t))
  if (count /= 4 .or. abs(total - 25.0_c_double / 12) > 1e-12_c_double) stop 6
end program
