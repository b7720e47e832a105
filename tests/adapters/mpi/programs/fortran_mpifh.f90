! The calls of Fortran programs that include mpif.h, on 4 ranks. Ends with an error if anything came wrong.
program fortran_mpifh
  implicit none
  include 'mpif.h'
  integer :: rank, ranks, next, before, code, i, count, requests(2), status(MPI_STATUS_SIZE)
  integer :: statuses(MPI_STATUS_SIZE, 2), indices(2), copy, length
  integer :: values(4), gathered(4)
  logical :: flag
  double precision :: total, mine
  character(len=MPI_MAX_OBJECT_NAME) :: name

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  call MPI_Comm_dup(MPI_COMM_WORLD, copy, code)
  call MPI_Comm_set_name(copy, 'tensor parallel', code)
  mine = rank
  do i = 1, 5
    call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, copy, code)
    if (total /= 6) stop 1
  end do
  gathered = 0
  gathered(rank + 1) = rank
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered, 1, MPI_INTEGER, MPI_COMM_WORLD, code)
  if (gathered(4) /= 3) stop 2
  call MPI_Comm_free(copy, code)
  ! A request each by Wait, Waitall, Test and Waitany.
  call MPI_Irecv(values(1), 1, MPI_INTEGER, before, 1, MPI_COMM_WORLD, requests(1), code)
  call MPI_Isend(rank, 1, MPI_INTEGER, next, 1, MPI_COMM_WORLD, requests(2), code)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, code)
  if (values(1) /= before) stop 3
  call MPI_Iallreduce(rank, values(2), 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, requests(1), code)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, code)
  if (values(2) /= 3) stop 4
  call MPI_Ibarrier(MPI_COMM_WORLD, requests(1), code)
  flag = .false.
  do while (.not. flag)
    call MPI_Test(requests(1), flag, status, code)
  end do
  requests(1) = MPI_REQUEST_NULL
  call MPI_Irecv(values(3), 1, MPI_INTEGER, before, 2, MPI_COMM_WORLD, requests(2), code)
  call MPI_Send(rank, 1, MPI_INTEGER, next, 2, MPI_COMM_WORLD, code)
  call MPI_Waitany(2, requests, i, status, code)
  if (i /= 2 .or. values(3) /= before) stop 5
  call MPI_Recv_init(values(4), 1, MPI_INTEGER, before, 3, MPI_COMM_WORLD, requests(1), code)
  call MPI_Send_init(rank, 1, MPI_INTEGER, next, 3, MPI_COMM_WORLD, requests(2), code)
  call MPI_Startall(2, requests, code)
  i = 0
  do while (i < 2)
    call MPI_Waitsome(2, requests, count, indices, statuses, code)
    i = i + count
  end do
  call MPI_Request_free(requests(1), code)
  call MPI_Request_free(requests(2), code)
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, next, 4, values(1), 1, MPI_INTEGER, before, 4, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, code)
  call MPI_Comm_get_name(MPI_COMM_WORLD, name, length, code)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, code)
  call MPI_Send(rank, 1, MPI_INTEGER, ranks + 7, 5, MPI_COMM_WORLD, code)
  if (code == MPI_SUCCESS) stop 6
  call MPI_Finalize(code)
end program
