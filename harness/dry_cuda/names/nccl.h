// Names of NCCL 2.28: only those that LibTorch's NCCL backend header uses and nccl.cpp implements.
// The backend depends on the layout of ncclConfig_t, so nccl.cpp rejects another size.
#pragma once

#include <climits>
#include <cstddef>

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_VERSION(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define NCCL_VERSION_CODE NCCL_VERSION(2, 28, 9)
#define NCCL_SPLIT_NOCOLOR -1

struct ncclComm;
using ncclComm_t = ncclComm*;

struct ncclUniqueId {
  char internal[128];
};

enum ncclResult_t {
  ncclSuccess = 0,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};

enum ncclDataType_t {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt64 = 4,
  ncclHalf = 6,
  ncclFloat = 7,
  ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
};

enum ncclRedOp_t { ncclSum = 0, ncclProd, ncclMax, ncclMin, ncclAvg, ncclMaxRedOp = INT_MAX };

struct ncclConfig_t {
  std::size_t size;
  unsigned magic, version;
  int blocking, cgaClusterSize, minCTAs, maxCTAs;
  const char* netName;
  int splitShare, trafficClass;
  const char* commName;
  int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs, nChannelsPerNetPeer, nvlinkCentricSched;
};

// The values that NCCL reads as "not set", member by member.
#define NCCL_CONFIG_INITIALIZER                                                                  \
  {                                                                                              \
    sizeof(ncclConfig_t), 0xcafebeef, NCCL_VERSION_CODE, INT_MIN, INT_MIN, INT_MIN, INT_MIN,     \
        nullptr, INT_MIN, INT_MIN, nullptr, INT_MIN, INT_MIN, INT_MIN, INT_MIN, INT_MIN, INT_MIN \
  }

extern "C" ncclResult_t ncclRedOpDestroy(ncclRedOp_t, ncclComm_t);
