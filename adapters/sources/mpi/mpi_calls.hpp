// Which calls of MPI are watched? Those in these tables, of MPI-3.1.
//
// A line is: the call's name after MPI_, the same in small letters (Fortran's), how much it moves
// (a function of mpi_shapes.hpp), and its parameters by kind (mpi_kinds.hpp). Its operation's word
// is in events/terms/collective_names.hpp. The preload makes a symbol of each line, the libraries
// for Open MPI and MPICH a function that says what happens. Non-blocking and persistent calls have
// a request after the parameters that stand here.
#pragma once

// Each also as a non-blocking call: Allreduce and Iallreduce.
#define RINGMAIN_MPI_COLLECTIVES(CALL)                                                             \
  CALL(Barrier, barrier, nothing, (Comm))                                                          \
  CALL(Bcast, bcast, broadcast, (Get, Count, Type, Root, Comm))                                    \
  CALL(Gather, gather, gather, (Give, Count, Type, Get, Count, Type, Root, Comm))                  \
  CALL(Gatherv, gatherv, gather_v, (Give, Count, Type, Get, Counts, Places, Type, Root, Comm))     \
  CALL(Scatter, scatter, scatter, (Give, Count, Type, Get, Count, Type, Root, Comm))               \
  CALL(Scatterv, scatterv, scatter_v, (Give, Counts, Places, Type, Get, Count, Type, Root, Comm))  \
  CALL(Allgather, allgather, all_gather, (Give, Count, Type, Get, Count, Type, Comm))              \
  CALL(Allgatherv, allgatherv, all_gather_v, (Give, Count, Type, Get, Counts, Places, Type, Comm)) \
  CALL(Alltoall, alltoall, all_to_all, (Give, Count, Type, Get, Count, Type, Comm))                \
  CALL(Alltoallv, alltoallv, all_to_all_v,                                                         \
       (Give, Counts, Places, Type, Get, Counts, Places, Type, Comm))                              \
  CALL(Alltoallw, alltoallw, all_to_all_w,                                                         \
       (Give, Counts, Places, Types, Get, Counts, Places, Types, Comm))                            \
  CALL(Reduce, reduce, reduce, (Give, Get, Count, Type, Reduction, Root, Comm))                    \
  CALL(Allreduce, allreduce, same, (Give, Get, Count, Type, Reduction, Comm))                      \
  CALL(Reduce_scatter, reduce_scatter, reduce_scatter_v,                                           \
       (Give, Get, Counts, Type, Reduction, Comm))                                                 \
  CALL(Reduce_scatter_block, reduce_scatter_block, reduce_scatter,                                 \
       (Give, Get, Count, Type, Reduction, Comm))                                                  \
  CALL(Scan, scan, same, (Give, Get, Count, Type, Reduction, Comm))                                \
  CALL(Exscan, exscan, same, (Give, Get, Count, Type, Reduction, Comm))                            \
  CALL(Neighbor_allgather, neighbor_allgather, neighbor_all_gather,                                \
       (Give, Count, Type, Get, Count, Type, Comm))                                                \
  CALL(Neighbor_allgatherv, neighbor_allgatherv, neighbor_all_gather_v,                            \
       (Give, Count, Type, Get, Counts, Places, Type, Comm))                                       \
  CALL(Neighbor_alltoall, neighbor_alltoall, neighbor_all_to_all,                                  \
       (Give, Count, Type, Get, Count, Type, Comm))                                                \
  CALL(Neighbor_alltoallv, neighbor_alltoallv, neighbor_all_to_all_v,                              \
       (Give, Counts, Places, Type, Get, Counts, Places, Type, Comm))                              \
  CALL(Neighbor_alltoallw, neighbor_alltoallw, neighbor_all_to_all_w,                              \
       (Give, Counts, Addresses, Types, Get, Counts, Addresses, Types, Comm))

#define RINGMAIN_MPI_BLOCKING(CALL)                                               \
  CALL(Send, send, send, (Give, Count, Type, Peer, Tag, Comm))                    \
  CALL(Bsend, bsend, send, (Give, Count, Type, Peer, Tag, Comm))                  \
  CALL(Ssend, ssend, send, (Give, Count, Type, Peer, Tag, Comm))                  \
  CALL(Rsend, rsend, send, (Give, Count, Type, Peer, Tag, Comm))                  \
  CALL(Recv, recv, receive, (Get, Count, Type, Peer, Tag, Comm, Status))          \
  CALL(Mrecv, mrecv, receive_matched, (Get, Count, Type, Message, Status))        \
  CALL(Sendrecv, sendrecv, send_receive,                                          \
       (Give, Count, Type, Peer, Tag, Get, Count, Type, Peer, Tag, Comm, Status)) \
  CALL(Sendrecv_replace, sendrecv_replace, send_receive_replace,                  \
       (Get, Count, Type, Peer, Tag, Peer, Tag, Comm, Status))

#define RINGMAIN_MPI_NONBLOCKING(CALL)                             \
  CALL(Isend, isend, send, (Give, Count, Type, Peer, Tag, Comm))   \
  CALL(Ibsend, ibsend, send, (Give, Count, Type, Peer, Tag, Comm)) \
  CALL(Issend, issend, send, (Give, Count, Type, Peer, Tag, Comm)) \
  CALL(Irsend, irsend, send, (Give, Count, Type, Peer, Tag, Comm)) \
  CALL(Irecv, irecv, receive, (Get, Count, Type, Peer, Tag, Comm)) \
  CALL(Imrecv, imrecv, receive_matched, (Get, Count, Type, Message))

// They only prepare what Start and Startall will do.
#define RINGMAIN_MPI_PERSISTENT(CALL)                                      \
  CALL(Send_init, send_init, send, (Give, Count, Type, Peer, Tag, Comm))   \
  CALL(Bsend_init, bsend_init, send, (Give, Count, Type, Peer, Tag, Comm)) \
  CALL(Ssend_init, ssend_init, send, (Give, Count, Type, Peer, Tag, Comm)) \
  CALL(Rsend_init, rsend_init, send, (Give, Count, Type, Peer, Tag, Comm)) \
  CALL(Recv_init, recv_init, receive, (Get, Count, Type, Peer, Tag, Comm))

// What becomes of requests, and of the program and its communicators. These are written by hand,
// and have numbers of parameters here: C's, and Fortran's with the error code.
#define RINGMAIN_MPI_OTHERS(CALL)                    \
  CALL(Wait, wait, 2, 3)                             \
  CALL(Waitall, waitall, 3, 4)                       \
  CALL(Waitany, waitany, 4, 5)                       \
  CALL(Waitsome, waitsome, 5, 6)                     \
  CALL(Test, test, 3, 4)                             \
  CALL(Testall, testall, 4, 5)                       \
  CALL(Testany, testany, 5, 6)                       \
  CALL(Testsome, testsome, 5, 6)                     \
  CALL(Request_free, request_free, 1, 2)             \
  CALL(Request_get_status, request_get_status, 3, 4) \
  CALL(Start, start, 1, 2)                           \
  CALL(Startall, startall, 2, 3)                     \
  CALL(Init, init, 2, 1)                             \
  CALL(Init_thread, init_thread, 4, 3)               \
  CALL(Finalize, finalize, 0, 1)                     \
  CALL(Abort, abort, 2, 3)                           \
  CALL(Comm_free, comm_free, 1, 2)                   \
  CALL(Comm_disconnect, comm_disconnect, 1, 2)       \
  CALL(Comm_set_name, comm_set_name, 2, 4)

namespace ringmain::mpi {

/// Numbers of the calls: the place of each in the tables that preload and library share.
#define RINGMAIN_MPI_NUMBER(name, ...) k##name,
#define RINGMAIN_MPI_NUMBER_OF_I(name, small, ...) kI##small,
enum Call : unsigned {
  RINGMAIN_MPI_COLLECTIVES(RINGMAIN_MPI_NUMBER)       //
  RINGMAIN_MPI_COLLECTIVES(RINGMAIN_MPI_NUMBER_OF_I)  //
  RINGMAIN_MPI_BLOCKING(RINGMAIN_MPI_NUMBER)          //
  RINGMAIN_MPI_NONBLOCKING(RINGMAIN_MPI_NUMBER)       //
  RINGMAIN_MPI_PERSISTENT(RINGMAIN_MPI_NUMBER)        //
  RINGMAIN_MPI_OTHERS(RINGMAIN_MPI_NUMBER)            //
  kCalls
};
#undef RINGMAIN_MPI_NUMBER
#undef RINGMAIN_MPI_NUMBER_OF_I

using Function = void (*)();

/// Where each call goes: from C, from Fortran's mpif.h and `use mpi`, and from mpi_f08.
struct Targets {
  Function c[kCalls];
  Function mpifh[kCalls];
  Function f08[kCalls];
};

}  // namespace ringmain::mpi

/// In the library for one kind of MPI. Gets MPI's own functions as targets, null where it has none,
/// and puts the library's in their place. 0: it could not, and `*why` says why.
extern "C" __attribute__((visibility("default"))) int ringmain_mpi_attach(
    ringmain::mpi::Targets* targets, const char** why);
