! The same calls by mpi_f08, most without the error code, which may be left out there.
program fortran_f08
  use mpi_f08
  implicit none
  integer :: rank, ranks, next, before, code, i, count, indices(2)
  integer :: values(4), gathered(4)
  logical :: flag
  double precision :: total, mine
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: status, statuses(2)
  type(MPI_Comm) :: copy

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  call MPI_Comm_dup(MPI_COMM_WORLD, copy)
  call MPI_Comm_set_name(copy, 'tensor parallel')
  mine = rank
  do i = 1, 5
    call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, copy)
    if (total /= 6) stop 1
  end do
  gathered = 0
  gathered(rank + 1) = rank
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered, 1, MPI_INTEGER, MPI_COMM_WORLD)
  if (gathered(4) /= 3) stop 2
  call MPI_Comm_free(copy)
  call MPI_Irecv(values(1), 1, MPI_INTEGER, before, 1, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(rank, 1, MPI_INTEGER, next, 1, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  if (values(1) /= before) stop 3
  call MPI_Iallreduce(rank, values(2), 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, requests(1))
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  if (values(2) /= 3) stop 4
  call MPI_Ibarrier(MPI_COMM_WORLD, requests(1))
  flag = .false.
  do while (.not. flag)
    call MPI_Test(requests(1), flag, status)
  end do
  requests(1) = MPI_REQUEST_NULL
  call MPI_Irecv(values(3), 1, MPI_INTEGER, before, 2, MPI_COMM_WORLD, requests(2))
  call MPI_Send(rank, 1, MPI_INTEGER, next, 2, MPI_COMM_WORLD)
  call MPI_Waitany(2, requests, i, status)
  if (values(3) /= before) stop 5  ! of the index MPICH 4.0.2 says one too little
  call MPI_Recv_init(values(4), 1, MPI_INTEGER, before, 3, MPI_COMM_WORLD, requests(1))
  call MPI_Send_init(rank, 1, MPI_INTEGER, next, 3, MPI_COMM_WORLD, requests(2))
  call MPI_Startall(2, requests)
  i = 0
  do while (i < 2)
    call MPI_Waitsome(2, requests, count, indices, statuses)
    i = i + count
  end do
  call MPI_Request_free(requests(1))
  call MPI_Request_free(requests(2))
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, next, 4, values(1), 1, MPI_INTEGER, before, 4, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Send(rank, 1, MPI_INTEGER, ranks + 7, 5, MPI_COMM_WORLD, code)
  if (code == MPI_SUCCESS) stop 6
  call MPI_Finalize()
end program
