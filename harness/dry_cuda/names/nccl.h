// Declares the names of NCCL that LibTorch's NCCL backend uses. nccl.cpp implements them, and
// rejects an ncclConfig_t whose size differs. The build sets DRY_NCCL_MINOR and DRY_NCCL_PATCH to
// the NCCL version that LibTorch needs.
#pragma once

#include <climits>
#include <cstddef>

#define NCCL_MAJOR 2
#define NCCL_MINOR DRY_NCCL_MINOR
#define NCCL_VERSION(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define NCCL_VERSION_CODE NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, DRY_NCCL_PATCH)
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

// NCCL reads INT_MIN and nullptr as "not set".
struct ncclConfig_t {
  std::size_t size = sizeof(ncclConfig_t);
  unsigned magic = 0xcafebeef, version = NCCL_VERSION_CODE;
  int blocking = INT_MIN, cgaClusterSize = INT_MIN, minCTAs = INT_MIN, maxCTAs = INT_MIN;
  const char* netName = nullptr;
  int splitShare = INT_MIN, trafficClass = INT_MIN;
  const char* commName = nullptr;
  int collnetEnable = INT_MIN, CTAPolicy = INT_MIN, shrinkShare = INT_MIN, nvlsCTAs = INT_MIN;
  int nChannelsPerNetPeer = INT_MIN, nvlinkCentricSched = INT_MIN;
#if NCCL_MINOR >= 29
  int graphUsageMode = INT_MIN, numRmaCtx = INT_MIN;
#endif
#if NCCL_MINOR >= 30
  int maxP2pPeers = INT_MIN, graphStreamOrdering = INT_MIN;
#endif
};

#define NCCL_CONFIG_INITIALIZER \
  {}

extern "C" ncclResult_t ncclRedOpDestroy(ncclRedOp_t, ncclComm_t);
