// Peak rates of a few devices from their data sheets, for rooflines. Real programs do not reach
// these peaks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/base/rejected.h"

namespace rematch {

// Device memory that a process needs in addition to its tensors.
//
// Note [Memory reserved on a card]
// - `context`: memory of the driver and the CUDA context. It is 0.3 to 0.6 GiB, depending on the
//   driver and the loaded kernels.
// - `communicator`: memory of NCCL's buffers for one communicator. Users report 0.5 to 0.7 GB on 4
//   GPUs (github.com/NVIDIA/nccl/issues/964) and 1.6 GB (github.com/NVIDIA/nccl/issues/864).
// - `fragmentation_ratio`: memory that LibTorch's caching allocator reserves beyond the tensors'
//   bytes, as a share of these bytes. The share was 14 to 20 % on an H100 (llama3_1b and wan_1_3b
//   under full and attn_only); other cards were not measured. With less memory, the allocator must
//   free blocks and retry, which is slow, or it fails.
struct CardReserve {
  Bytes context;
  Bytes communicator;
  double fragmentation_ratio = 0;
};

inline constexpr CardReserve kUsualReserve{
    Bytes{std::int64_t{512} << 20}, Bytes{std::int64_t{1} << 30}, /*fragmentation_ratio=*/0.2};

struct DeviceSheet {
  std::string_view name;    // "h100"
  std::string_view source;  // the document that the figures are taken from
  Bytes memory;
  // Dense rate, without structured sparsity.
  double bfloat16_flops_per_second = 0;
  // float32 rate without TF32, because LibTorch disables TF32 by default
  double float32_flops_per_second = 0;
  double memory_bytes_per_second = 0;
  double pcie_bytes_per_second = 0;  // rate in one direction
  // Rate to the other cards of a node, in one direction. It is the rate of NVLink, or of PCIe if
  // the card has no NVLink.
  double link_bytes_per_second = 0;
  // card names that the driver reports, such as "NVIDIA H100 80GB HBM3"
  std::vector<std::string_view> cards;
  CardReserve reserve = kUsualReserve;
};

const std::vector<DeviceSheet>& device_sheets();

// Returns null if the device is unknown.
const DeviceSheet* find_device_sheet(std::string_view name);
// Finds a data sheet by the name that the driver gives the card. Returns null if no data sheet has
// this name.
const DeviceSheet* sheet_of_card(std::string_view card);

// Returns text to append to an error message: the known devices, and a suggestion if the name looks
// like a typo.
Rejected unknown_device(std::string_view name);

}  // namespace rematch
