// Peak rates of a few devices from their data sheets, for rooflines. Programs do not reach these
// peaks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"

namespace rematch {

// Memory of a card that a process needs besides its tensors.
//
// Note [What is reserved of a card]
// `context`: the driver and the CUDA context. It takes 0.3 to 0.6 GiB, depending on driver and
// loaded kernels.
// `communicator`: NCCL's buffers for each communicator. Reports say 0.5 to 0.7 GB on 4 GPUs
// (github.com/NVIDIA/nccl/issues/964) and 1.6 GB (github.com/NVIDIA/nccl/issues/864).
// `fragmentation_ratio`: memory that LibTorch's caching allocator reserves beyond the tensors'
// bytes. On an H100 it reserved 14 to 20 % more (llama3_1b and wan_1_3b under full and attn_only).
// If the card's memory does not allow that much, the allocator frees blocks and retries, which is
// slow, or fails. Other cards use the same allocator but were not measured.
struct CardReserve {
  Bytes context;
  Bytes communicator;
  double fragmentation_ratio = 0;
};

inline constexpr CardReserve kUsualReserve{
    Bytes{std::int64_t{512} << 20}, Bytes{std::int64_t{1} << 30}, /*fragmentation_ratio=*/0.2};

struct DeviceSheet {
  std::string_view name;    // "h100"
  std::string_view source;  // the document that states the figures
  Bytes memory;
  // Dense rate, without structured sparsity.
  double bfloat16_flops_per_second = 0;
  double float32_flops_per_second = 0;  // pure float32 without TF32, LibTorch's default
  double memory_bytes_per_second = 0;
  double pcie_bytes_per_second = 0;  // in one direction
  // Rate to the other cards of a node, in one direction. NVLink, or PCIe if the card has no NVLink.
  double link_bytes_per_second = 0;
  // The driver's names for cards with these rates: "NVIDIA H100 80GB HBM3".
  std::vector<std::string_view> cards;
  CardReserve reserve = kUsualReserve;
};

const std::vector<DeviceSheet>& device_sheets();

// Returns null if the device is unknown.
const DeviceSheet* find_device_sheet(std::string_view name);
// Finds a sheet by the driver's name of the card. Returns null if there is none.
const DeviceSheet* sheet_of_card(std::string_view card);

// Names the nearest known device if the name looks like a typing mistake, and lists the known
// devices.
Rejected unknown_device(std::string_view name);

}  // namespace rematch
