"""Where do NCCL's structures have what its profiler front end looks at?  gdb -batch -nx -x nccl_layout.py LIBRARY

Runs inside gdb, which reads the library's own DWARF. Prints one line for each structure, member, enumerator and function that is
there; what this release has not is left out:
  size STRUCT BYTES / member STRUCT.MEMBER OFFSET / value ENUMERATOR NUMBER / symbol NAME OFFSET / thread NAME OFFSET
  layout TYPE MEMBER.MEMBER OFFSET SIZE, of each descriptor and table of the plugins' ABI
"""

import re

import gdb  # pylint: disable=import-error

MEMBERS = {
    "ncclComm": ("commHash", "rank", "nRanks", "nNodes", "config.commName", "profilerContext", "seqNumber"),
    "ncclInfo": ("coll", "count", "datatype", "root", "comm", "stream", "collConfig.userProfilerTag"),
    "ncclKernelPlan": ("comm", "persistent", "collTaskQueue", "p2pTaskQueue", "kernelLaunchEventHandle", "groupEventHandle"),
    "ncclTaskColl": ("next", "func", "sendbuff", "recvbuff", "count", "root", "datatype", "nWarps", "algorithm", "protocol",
                     "eActivationMask", "groupApiEventHandle", "collApiEventHandle", "eventHandle", "nChannels", "profilerTag"),
    "ncclTaskP2p": ("next", "func", "buff", "count", "datatype", "root", "eActivationMask", "groupApiEventHandle",
                    "p2pApiEventHandle", "eventHandle", "nChannels", "profilerTag", "channelMask"),
    "ncclProxyArgs": ("subs", "progress", "sliceSteps", "chunkSize"),
    "ncclProxySubArgs": ("channelId", "nsteps", "peer", "eActivationMask", "rank", "pid", "profilerContext", "taskEventHandle",
                         "opEventHandle", "kernelEventHandle", "pHandles", "transSize"),
    "ncclProxyEventHandle": ("stepEventHandle", "subArgPtr"),
    "ncclProfilerWorkOp": ("channelId", "eActivationMask", "taskEventHandle", "profilerContext", "kernelEventHandle"),
    "ncclProfilerApiState": ("profilerGroupDepth", "eActivationMask", "state", "groupApiEventHandle", "p2pApiEventHandle",
                             "collApiEventHandle"),
    "ncclCeCollArgs": ("func", "rootRank", "datatype", "nElts", "sendBuff", "recvBuff", "collApiEventHandle", "ceCollProfHandle",
                       "userTag"),
    "ncclCeBatchOpsParams": ("numOps", "sizes", "intraBatchSync"),
    "ncclTransport": ("send",),
    "ncclTransportComm": ("proxyProgress",),
}
VALUES = ("ncclFuncAllGather", "ncclFuncAllReduce", "ncclFuncReduceScatter", "ncclFuncSend", "ncclFuncRecv")
DATA = ("ncclProfilerEventMask", "ncclTransports")
THREADS = ("ncclGroupDepth", "ncclProfilerApiState")
FUNCTIONS = """_Z20ncclProfilerCallbackPPviS_lS_ _Z22ncclProfilerPluginInitP8ncclComm _Z24ncclProfilerPluginLoadedv
 _Z26ncclProfilerPluginFinalizeP8ncclComm _Z26ncclProfilerStopGroupEventP14ncclKernelPlan
 _Z26ncclProfilerStopTaskEventsP14ncclKernelPlan _Z27ncclProfilerStartGroupEventP14ncclKernelPlan
 _Z27ncclProfilerStartTaskEventsP14ncclKernelPlan _Z27ncclProfilerStopCeCollEventP8ncclCommP14ncclCeCollArgsP11CUstream_st
 _Z27ncclProfilerStopCeSyncEventP8ncclCommPvP11CUstream_st _Z27ncclProfilerStopP2pApiEventv
 _Z28ncclProfilerStartCeCollEventP8ncclCommP14ncclCeCollArgsP11CUstream_st
 _Z28ncclProfilerStartCeSyncEventP8ncclCommP14ncclCeCollArgsP11CUstream_stPPv _Z28ncclProfilerStartP2pApiEventP8ncclInfob
 _Z28ncclProfilerStopCeBatchEventP8ncclCommPvP11CUstream_st _Z28ncclProfilerStopCollApiEventv
 _Z28ncclProfilerStopProxyOpEventiP13ncclProxyArgs
 _Z29ncclProfilerStartCeBatchEventP8ncclCommP14ncclCeCollArgsP20ncclCeBatchOpsParamsP11CUstream_stPPv
 _Z29ncclProfilerStartCollApiEventP8ncclInfob _Z29ncclProfilerStartProxyOpEventiP13ncclProxyArgs
 _Z29ncclProfilerStopGroupApiEventv _Z29ncclProfilerStopKernelChEventP18ncclProfilerWorkOpm
 _Z29ncclProfilerStopKernelChEventP13ncclProxyArgsim _Z30ncclProfilerStartGroupApiEventP8ncclInfob
 _Z30ncclProfilerStartKernelChEventP18ncclProfilerWorkOpm _Z30ncclProfilerStartKernelChEventP13ncclProxyArgsim
 _Z30ncclProfilerStopProxyCtrlEventPv _Z30ncclProfilerStopProxyStepEventiP13ncclProxyArgsi
 _Z31ncclProfilerStartProxyCtrlEventPvPS_ _Z33ncclProfilerStopKernelLaunchEventP14ncclKernelPlan
 _Z34ncclProfilerStartKernelLaunchEventP14ncclKernelPlanP11CUstream_st
 _Z35ncclProfilerRecordProxyOpEventStateiP13ncclProxyArgs24ncclProfilerEventState_t
 _Z35ncclProfilerStartRecvProxyStepEventiP13ncclProxyArgsi _Z35ncclProfilerStartSendProxyStepEventiP13ncclProxyArgsi
 _Z36ncclProfilerRecordGroupApiEventState24ncclProfilerEventState_t
 _Z37ncclProfilerRecordProxyCtrlEventStatePvi24ncclProfilerEventState_t
 _Z37ncclProfilerRecordProxyStepEventStateiP13ncclProxyArgsi24ncclProfilerEventState_t""".split()


def type_of(name):
    for spelled in (name, f"struct {name}"):
        try:
            return gdb.lookup_type(spelled).strip_typedefs()
        except gdb.error:
            pass
    return None


def place_of(struct, path):
    """The offset of a member of a member, in bytes; None if there is none of this name."""
    offset = 0
    for name in path.split("."):
        found = [field for field in struct.fields() if field.name == name]
        if not found:
            return None
        offset += found[0].bitpos // 8
        struct = found[0].type.strip_typedefs()
    return offset


def leaves(struct, path=(), begin=0):
    """(path, offset, size) of what a descriptor holds, through its unions and structures."""
    for field in struct.fields():
        inner = field.type.strip_typedefs()
        offset = begin + field.bitpos // 8
        named = path + ((field.name,) if field.name else ())
        if inner.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
            yield from leaves(inner, named, offset)
        else:
            yield named, offset, inner.sizeof


def value_of(expression):
    try:
        return int(gdb.parse_and_eval(expression))
    except gdb.error:
        return None


def say(*words):
    print(*words)


gdb.execute("set width 0")
# First: once the structure of the same name is known, it hides the variable.
for symbol in THREADS:
    try:
        told = gdb.execute(f"info address {symbol}", to_string=True)
    except gdb.error:
        continue
    if found := re.search(r"thread-local variable at offset (0x[0-9a-f]+)", told):
        say("thread", symbol, int(found[1], 16))
for struct_name, members in MEMBERS.items():
    struct = type_of(struct_name)
    if struct is None:
        continue
    say("size", struct_name, struct.sizeof)
    for member in members:
        place = place_of(struct, member)
        if place is not None:
            say("member", f"{struct_name}.{member}", place)
for value in VALUES:
    if (number := value_of(f"(int){value}")) is not None:
        say("value", value, number)
for symbol in (*FUNCTIONS, *DATA):
    if (place := value_of(f"(unsigned long)&'{symbol}'")) is not None:
        say("symbol", symbol, place)
for version in range(4, 8):
    for theirs, ours in ((f"ncclProfilerEventDescr_v{version}_t", f"ringmain::nccl::abi::DescriptorV{version}"),
                         (f"ncclProfilerEventStateArgs_v{version}_t", "ringmain::nccl::abi::StateArgs"),
                         (f"ncclProfiler_v{version}_t", f"ringmain::nccl::abi::TableV{version}")):
        for name in (theirs, ours):
            struct = type_of(name)
            if struct is None:
                continue
            say("size", name, struct.sizeof)
            for path, offset, size in leaves(struct):
                say("layout", name, ".".join(path), offset, size)
