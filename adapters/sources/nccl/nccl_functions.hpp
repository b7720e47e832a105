// Which functions has NCCL? All of nccl.h of 2.32.3, in one table, of which the wrapper (nccl.hpp),
// the preload and the stand-in for tests are made. Tests compare it with NCCL's own header.
//
// A row: the name without `nccl`, NCCL's version code when it came (20000: before 2.14), its
// parameters, their names. Classes differ in what a call means to who listens:
// - twinned, one_way: operations on a stream; what each moves stands in the row. The first have a
//   twin, `…Config`, which came with 2.31 and takes one parameter more;
// - group: they bracket operations;
// - life: communicators come and go, and what became of what they began;
// - memory, query: nobody is told of them. Of these last the result is in the row: queries of
//   strings give none of NCCL's codes.
// Needs the C library only.
#pragma once
#include <cstddef>

#define RINGMAIN_NCCL_PLAIN(...) __VA_ARGS__

// Rows: name, since, parameters, names, what moves: sent, received, elements, type, reduction, the
// other rank or the root.
#define RINGMAIN_NCCL_TWINNED(X)                                                                 \
  X(AllReduce, 20000,                                                                            \
    (const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype,           \
     ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),                                      \
    (sendbuff, recvbuff, count, datatype, op, comm, stream),                                     \
    (sendbuff, recvbuff, count, datatype, op, -1))                                               \
  X(Broadcast, 20000,                                                                            \
    (const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype, int root, \
     ncclComm_t comm, cudaStream_t stream),                                                      \
    (sendbuff, recvbuff, count, datatype, root, comm, stream),                                   \
    (sendbuff, recvbuff, count, datatype, -1, root))                                             \
  X(Reduce, 20000,                                                                               \
    (const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype,           \
     ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream),                            \
    (sendbuff, recvbuff, count, datatype, op, root, comm, stream),                               \
    (sendbuff, recvbuff, count, datatype, op, root))                                             \
  X(AllGather, 20000,                                                                            \
    (const void* sendbuff, void* recvbuff, std::size_t sendcount, ncclDataType_t datatype,       \
     ncclComm_t comm, cudaStream_t stream),                                                      \
    (sendbuff, recvbuff, sendcount, datatype, comm, stream),                                     \
    (sendbuff, recvbuff, sendcount, datatype, -1, -1))                                           \
  X(ReduceScatter, 20000,                                                                        \
    (const void* sendbuff, void* recvbuff, std::size_t recvcount, ncclDataType_t datatype,       \
     ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),                                      \
    (sendbuff, recvbuff, recvcount, datatype, op, comm, stream),                                 \
    (sendbuff, recvbuff, recvcount, datatype, op, -1))                                           \
  X(AlltoAll, 22803,                                                                             \
    (const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype,           \
     ncclComm_t comm, cudaStream_t stream),                                                      \
    (sendbuff, recvbuff, count, datatype, comm, stream),                                         \
    (sendbuff, recvbuff, count, datatype, -1, -1))                                               \
  X(Gather, 22803,                                                                               \
    (const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype, int root, \
     ncclComm_t comm, cudaStream_t stream),                                                      \
    (sendbuff, recvbuff, count, datatype, root, comm, stream),                                   \
    (sendbuff, recvbuff, count, datatype, -1, root))                                             \
  X(Scatter, 22803,                                                                              \
    (const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype, int root, \
     ncclComm_t comm, cudaStream_t stream),                                                      \
    (sendbuff, recvbuff, count, datatype, root, comm, stream),                                   \
    (sendbuff, recvbuff, count, datatype, -1, root))

#define RINGMAIN_NCCL_ONE_WAY(X)                                                                  \
  X(Bcast, 20000,                                                                                 \
    (void* buff, std::size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,           \
     cudaStream_t stream),                                                                        \
    (buff, count, datatype, root, comm, stream), (buff, buff, count, datatype, -1, root))         \
  X(Send, 20700,                                                                                  \
    (const void* sendbuff, std::size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, \
     cudaStream_t stream),                                                                        \
    (sendbuff, count, datatype, peer, comm, stream),                                              \
    (sendbuff, nullptr, count, datatype, -1, peer))                                               \
  X(Recv, 20700,                                                                                  \
    (void* recvbuff, std::size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,       \
     cudaStream_t stream),                                                                        \
    (recvbuff, count, datatype, peer, comm, stream),                                              \
    (nullptr, recvbuff, count, datatype, -1, peer))                                               \
  X(PutSignal, 22900,                                                                             \
    (const void* localbuff, std::size_t count, ncclDataType_t datatype, int peer,                 \
     ncclWindow_t peerWin, std::size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags,    \
     ncclComm_t comm, cudaStream_t stream),                                                       \
    (localbuff, count, datatype, peer, peerWin, peerWinOffset, sigIdx, ctx, flags, comm, stream), \
    (localbuff, nullptr, count, datatype, -1, peer))                                              \
  X(Signal, 22900,                                                                                \
    (int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream),    \
    (peer, sigIdx, ctx, flags, comm, stream), (nullptr, nullptr, 0, -1, -1, peer))                \
  X(WaitSignal, 22900,                                                                            \
    (int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm, cudaStream_t stream),         \
    (nDesc, signalDescs, comm, stream),                                                           \
    (nullptr, nullptr, 0, -1, -1, nDesc == 1 && signalDescs != nullptr ? signalDescs->peer : -1))

#define RINGMAIN_NCCL_GROUP(X) \
  X(GroupStart, 20000, (), ()) \
  X(GroupEnd, 20000, (), ())   \
  X(GroupSimulateEnd, 22200, (ncclSimInfo_t * simInfo), (simInfo))

// Rows: name, since, parameters, names, what it is about (LifeCall of nccl_call.hpp).
#define RINGMAIN_NCCL_LIFE(X)                                                                     \
  X(CommInitRank, 20000, (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank),          \
    (comm, nranks, commId, rank), (.made = comm, .ids = &commId, .ranks = nranks, .rank = rank))  \
  X(CommInitRankConfig, 21400,                                                                    \
    (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config),         \
    (comm, nranks, commId, rank, config),                                                         \
    (.made = comm, .ids = &commId, .config = config, .ranks = nranks, .rank = rank))              \
  X(CommInitRankScalable, 22300,                                                                  \
    (ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,                \
     ncclConfig_t* config),                                                                       \
    (newcomm, nranks, myrank, nId, commIds, config),                                              \
    (.made = newcomm, .ids = nId > 0 ? commIds : nullptr, .config = config, .ranks = nranks,      \
     .rank = myrank))                                                                             \
  X(CommInitAll, 20000, (ncclComm_t * comm, int ndev, const int* devlist), (comm, ndev, devlist), \
    (.made = comm, .ranks = ndev))                                                                \
  X(CommSplit, 21800,                                                                             \
    (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config),             \
    (comm, color, key, newcomm, config),                                                          \
    (.comm = comm, .made = newcomm, .config = config, .word = color))                             \
  X(CommShrink, 22703,                                                                            \
    (ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,          \
     ncclConfig_t* config, int shrinkFlags),                                                      \
    (comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags),                    \
    (.comm = comm, .made = newcomm, .config = config, .word = shrinkFlags))                       \
  X(CommGrow, 22900,                                                                              \
    (ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm,    \
     ncclConfig_t* config),                                                                       \
    (comm, nRanks, uniqueId, rank, newcomm, config),                                              \
    (.comm = comm, .made = newcomm, .ids = uniqueId, .config = config, .ranks = nRanks,           \
     .rank = rank))                                                                               \
  X(CommFinalize, 21400, (ncclComm_t comm), (comm), (.comm = comm))                               \
  X(CommDestroy, 20000, (ncclComm_t comm), (comm), (.comm = comm))                                \
  X(CommAbort, 20000, (ncclComm_t comm), (comm), (.comm = comm))                                  \
  X(CommRevoke, 22807, (ncclComm_t comm, int revokeFlags), (comm, revokeFlags),                   \
    (.comm = comm, .word = revokeFlags))                                                          \
  X(CommGetAsyncError, 20000, (ncclComm_t comm, ncclResult_t * asyncError), (comm, asyncError),   \
    (.comm = comm, .error = asyncError))

// Rows: result, name, since, parameters, names.
#define RINGMAIN_NCCL_MEMORY(X)                                                                  \
  X(ncclResult_t, MemAlloc, 21900, (void** ptr, std::size_t size), (ptr, size))                  \
  X(ncclResult_t, MemFree, 21900, (void* ptr), (ptr))                                            \
  X(ncclResult_t, CommRegister, 21900,                                                           \
    (const ncclComm_t comm, void* buff, std::size_t size, void** handle),                        \
    (comm, buff, size, handle))                                                                  \
  X(ncclResult_t, CommDeregister, 21900, (const ncclComm_t comm, void* handle), (comm, handle))  \
  X(ncclResult_t, CommWindowRegister, 22703,                                                     \
    (ncclComm_t comm, void* buff, std::size_t size, ncclWindow_t* win, int winFlags),            \
    (comm, buff, size, win, winFlags))                                                           \
  X(ncclResult_t, CommWindowDeregister, 22703, (ncclComm_t comm, ncclWindow_t win), (comm, win)) \
  X(ncclResult_t, WinGetUserPtr, 22900, (ncclComm_t comm, ncclWindow_t win, void** outUserPtr),  \
    (comm, win, outUserPtr))                                                                     \
  X(ncclResult_t, CommSuspend, 22907, (ncclComm_t comm, int flags), (comm, flags))               \
  X(ncclResult_t, CommResume, 22907, (ncclComm_t comm), (comm))

#define RINGMAIN_NCCL_QUERY(X)                                                                    \
  X(ncclResult_t, GetVersion, 20000, (int* version), (version))                                   \
  X(ncclResult_t, GetUniqueId, 20000, (ncclUniqueId * uniqueId), (uniqueId))                      \
  X(ncclResult_t, CommGetUniqueId, 22900, (ncclComm_t comm, ncclUniqueId * uniqueId),             \
    (comm, uniqueId))                                                                             \
  X(const char*, GetErrorString, 20000, (ncclResult_t result), (result))                          \
  X(const char*, GetLastError, 21300, (ncclComm_t comm), (comm))                                  \
  X(ncclResult_t, CommCount, 20000, (const ncclComm_t comm, int* count), (comm, count))           \
  X(ncclResult_t, CommCuDevice, 20000, (const ncclComm_t comm, int* device), (comm, device))      \
  X(ncclResult_t, CommUserRank, 20000, (const ncclComm_t comm, int* rank), (comm, rank))          \
  X(ncclResult_t, CommMemStats, 22907,                                                            \
    (ncclComm_t comm, ncclCommMemStat_t stat, std::uint64_t * value), (comm, stat, value))        \
  X(ncclResult_t, RedOpCreatePreMulSum, 21100,                                                    \
    (ncclRedOp_t * op, void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence,    \
     ncclComm_t comm),                                                                            \
    (op, scalar, datatype, residence, comm))                                                      \
  X(ncclResult_t, RedOpDestroy, 21100, (ncclRedOp_t op, ncclComm_t comm), (op, comm))             \
  X(ncclResult_t, SetEncryption, 23203, (const ncclEncryptionConfig_t* config), (config))         \
  X(ncclResult_t, ParamBind, 23000, (ncclParamHandle_t * out, const char* key), (out, key))       \
  X(ncclResult_t, ParamGetI8, 23000, (ncclParamHandle_t h, std::int8_t * out), (h, out))          \
  X(ncclResult_t, ParamGetI16, 23000, (ncclParamHandle_t h, std::int16_t * out), (h, out))        \
  X(ncclResult_t, ParamGetI32, 23000, (ncclParamHandle_t h, std::int32_t * out), (h, out))        \
  X(ncclResult_t, ParamGetI64, 23000, (ncclParamHandle_t h, std::int64_t * out), (h, out))        \
  X(ncclResult_t, ParamGetU8, 23000, (ncclParamHandle_t h, std::uint8_t * out), (h, out))         \
  X(ncclResult_t, ParamGetU16, 23000, (ncclParamHandle_t h, std::uint16_t * out), (h, out))       \
  X(ncclResult_t, ParamGetU32, 23000, (ncclParamHandle_t h, std::uint32_t * out), (h, out))       \
  X(ncclResult_t, ParamGetU64, 23000, (ncclParamHandle_t h, std::uint64_t * out), (h, out))       \
  X(ncclResult_t, ParamGetStr, 23000, (ncclParamHandle_t h, const char** out), (h, out))          \
  X(ncclResult_t, ParamGet, 23000, (ncclParamHandle_t h, void* out, int maxLen, int* len),        \
    (h, out, maxLen, len))                                                                        \
  X(ncclResult_t, ParamGetParameter, 23000, (const char* key, const char** value, int* valueLen), \
    (key, value, valueLen))                                                                       \
  X(ncclResult_t, ParamGetAllParameterKeys, 23000, (const char*** table, int* tableLen),          \
    (table, tableLen))                                                                            \
  X(void, ParamDumpAll, 23000, (), ())

namespace ringmain::nccl {

/// The functions, in the table's order.
enum class Function : unsigned {
#define RINGMAIN_NCCL_NAME_2(name, ...) name, name##Config,
#define RINGMAIN_NCCL_NAME(name, ...) name,
#define RINGMAIN_NCCL_NAME_OF(result, name, ...) name,
  RINGMAIN_NCCL_TWINNED(RINGMAIN_NCCL_NAME_2)  //
  RINGMAIN_NCCL_ONE_WAY(RINGMAIN_NCCL_NAME)    //
  RINGMAIN_NCCL_GROUP(RINGMAIN_NCCL_NAME)      //
  RINGMAIN_NCCL_LIFE(RINGMAIN_NCCL_NAME)       //
  RINGMAIN_NCCL_MEMORY(RINGMAIN_NCCL_NAME_OF)  //
  RINGMAIN_NCCL_QUERY(RINGMAIN_NCCL_NAME_OF)   //
  kCount
#undef RINGMAIN_NCCL_NAME_2
#undef RINGMAIN_NCCL_NAME
#undef RINGMAIN_NCCL_NAME_OF
};
inline constexpr unsigned kFunctions = static_cast<unsigned>(Function::kCount);

/// Their symbols, "ncclAllReduce", and the version code with which each came.
struct FunctionRow {
  const char* symbol;
  int since;
};
[[gnu::visibility("hidden")]] inline constexpr FunctionRow kFunctionRows[kFunctions] = {
#define RINGMAIN_NCCL_ROW_2(name, since, ...) {"nccl" #name, since}, {"nccl" #name "Config", 23102},
#define RINGMAIN_NCCL_ROW(name, since, ...) {"nccl" #name, since},
#define RINGMAIN_NCCL_ROW_OF(result, name, since, ...) {"nccl" #name, since},
    RINGMAIN_NCCL_TWINNED(RINGMAIN_NCCL_ROW_2)  //
    RINGMAIN_NCCL_ONE_WAY(RINGMAIN_NCCL_ROW)    //
    RINGMAIN_NCCL_GROUP(RINGMAIN_NCCL_ROW)      //
    RINGMAIN_NCCL_LIFE(RINGMAIN_NCCL_ROW)       //
    RINGMAIN_NCCL_MEMORY(RINGMAIN_NCCL_ROW_OF)  //
    RINGMAIN_NCCL_QUERY(RINGMAIN_NCCL_ROW_OF)   //
#undef RINGMAIN_NCCL_ROW_2
#undef RINGMAIN_NCCL_ROW
#undef RINGMAIN_NCCL_ROW_OF
};

/// NCCL's functions, or what stands in for them; nullptr: it has none of that name.
using AnyFunction = void();
struct Functions {
  AnyFunction* at[kFunctions] = {};
};

}  // namespace ringmain::nccl
