// Stand-in for libnccl. No data moves between ranks. A collective is one kernel, whose name gives
// the element type and count. As in NCCL, collectives of one kind between ncclGroupStart and
// ncclGroupEnd share one kernel.
#include <nccl.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "harness/dry_cuda/dry_cuda.h"

struct ncclComm {
  int rank, size;
};

namespace dry_cuda {
namespace {

constexpr std::uint32_t kChannels = 24;  // as many channels and threads as NCCL uses within a node
constexpr std::uint32_t kThreads = 544;

const char* name_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return "i8";
    case ncclUint8:
      return "u8";
    case ncclInt32:
      return "i32";
    case ncclInt64:
      return "i64";
    case ncclHalf:
      return "f16";
    case ncclFloat:
      return "f32";
    case ncclDouble:
      return "f64";
    case ncclBfloat16:
      return "bf16";
    default:
      return "other";
  }
}

std::string reduction_name(ncclRedOp_t reduction) {
  constexpr const char* kNames[] = {"Sum", "Prod", "Max", "Min", "Avg"};
  return reduction <= ncclAvg ? kNames[reduction] : "PreMulSum";
}

// A collective call. `count` is the number of elements in this rank's input.
struct Call {
  std::string kind;
  std::size_t count;
  ncclComm_t comm;
  void* stream;
};

struct Group {
  int depth = 0;
  std::vector<Call> calls;
};
thread_local Group group;

// Returns a kernel's name, such as "ncclDevKernel_AllReduce_Sum_f32_n4096_r2" for 4096 elements and
// 2 ranks. Unlike NCCL's own names, it does not contain the algorithm and the protocol.
void launch(const Call& call) {
  char name[128];
  std::snprintf(name, sizeof name, "ncclDevKernel_%s_n%zu_r%d", call.kind.c_str(), call.count,
                call.comm->size);
  const std::uint32_t grid[3] = {kChannels, 1, 1};
  const std::uint32_t block[3] = {kThreads, 1, 1};
  dry_cuda_launch(name, grid, block, 0, call.stream);
}

// Launches the calls of a group. Consecutive calls of the same kind, communicator and stream share
// a kernel.
void launch_group() {
  std::vector<Call> kernels;
  for (const Call& call : group.calls) {
    const bool joins = !kernels.empty() && kernels.back().kind == call.kind &&
                       kernels.back().comm == call.comm && kernels.back().stream == call.stream;
    if (joins) {
      kernels.back().count += call.count;
    } else {
      kernels.push_back(call);
    }
  }
  group.calls.clear();
  for (const Call& kernel : kernels) launch(kernel);
}

ncclResult_t add(const char* function, std::string kind, std::size_t count, ncclComm_t comm,
                 void* stream) {
  if (const int code = dry_cuda_planted(function)) return static_cast<ncclResult_t>(code);
  if (comm == nullptr) return ncclInvalidArgument;
  if (count == 0) return ncclSuccess;  // NCCL launches no kernel for 0 elements
  group.calls.push_back({std::move(kind), count, comm, stream});
  if (group.depth == 0) launch_group();
  return ncclSuccess;
}

ncclResult_t init(ncclComm_t* comm, int size, int rank) {
  if (const int code = dry_cuda_planted("ncclCommInitRank")) return static_cast<ncclResult_t>(code);
  if (size < 1 || rank < 0 || rank >= size) return ncclInvalidArgument;
  *comm = new ncclComm{rank, size};
  return ncclSuccess;
}

std::string typed(const char* kind, ncclDataType_t type) {
  return std::string(kind) + "_" + name_of(type);
}

std::string reducing(const char* kind, ncclRedOp_t reduction, ncclDataType_t type) {
  return typed((std::string(kind) + "_" + reduction_name(reduction)).c_str(), type);
}

}  // namespace
}  // namespace dry_cuda

extern "C" {

using namespace dry_cuda;
using Buffer = const void*;

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t) { return "an error of the dry device's NCCL"; }
const char* ncclGetLastError(ncclComm_t) { return "none"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 1, sizeof *id);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId, int rank) {
  return init(comm, size, rank);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId, int rank,
                                    ncclConfig_t* config) {
  if (config != nullptr && config->size != sizeof(ncclConfig_t)) return ncclInvalidUsage;
  return init(comm, size, rank);
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) { return ncclCommDestroy(comm); }

ncclResult_t ncclCommCount(ncclComm_t comm, int* size) {
  *size = comm->size;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* reduction, void*, ncclDataType_t, int,
                                      ncclComm_t) {
  *reduction = ncclMaxRedOp;
  return ncclSuccess;
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t, ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth == 0) launch_group();
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(Buffer, void*, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t reduction, ncclComm_t comm, void* stream) {
  return add("ncclAllReduce", reducing("AllReduce", reduction, type), count, comm, stream);
}
ncclResult_t ncclReduce(Buffer, void*, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t reduction, int, ncclComm_t comm, void* stream) {
  return add("ncclReduce", reducing("Reduce", reduction, type), count, comm, stream);
}
// `count` is the size of each rank's part of the output.
ncclResult_t ncclReduceScatter(Buffer, void*, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t comm, void* stream) {
  const std::size_t all = comm == nullptr ? 0 : count * static_cast<std::size_t>(comm->size);
  return add("ncclReduceScatter", reducing("ReduceScatter", reduction, type), all, comm, stream);
}
ncclResult_t ncclAllGather(Buffer, void*, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           void* stream) {
  return add("ncclAllGather", typed("AllGather", type), count, comm, stream);
}
ncclResult_t ncclBroadcast(Buffer, void*, std::size_t count, ncclDataType_t type, int,
                           ncclComm_t comm, void* stream) {
  return add("ncclBroadcast", typed("Broadcast", type), count, comm, stream);
}
ncclResult_t ncclBcast(void*, std::size_t count, ncclDataType_t type, int, ncclComm_t comm,
                       void* stream) {
  return add("ncclBcast", typed("Broadcast", type), count, comm, stream);
}
// NCCL implements this collective as one send of `count` elements to each rank, and one receive
// from each rank.
ncclResult_t ncclAlltoAll(Buffer, void*, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                          void* stream) {
  const std::size_t all = comm == nullptr ? 0 : count * static_cast<std::size_t>(comm->size);
  return add("ncclAlltoAll", typed("SendRecv", type), all, comm, stream);
}
ncclResult_t ncclSend(Buffer, std::size_t count, ncclDataType_t type, int, ncclComm_t comm,
                      void* stream) {
  return add("ncclSend", typed("SendRecv", type), count, comm, stream);
}
// Launches nothing, because the matching send in the same group launches one kernel for both.
ncclResult_t ncclRecv(void*, std::size_t, ncclDataType_t, int, ncclComm_t, void*) {
  return ncclSuccess;
}

}  // extern "C"
