// Peak rates from the data sheets of a few devices, for rooflines. Peaks of the hardware,
// not what any program reaches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"

namespace rematch {

// What a process takes of a card's memory besides its tensors.
//
// Note [What is reserved of a card]
// `context`: the driver and CUDA's context, 0.3 to 0.6 GiB by driver and loaded kernels.
// `communicator`: NCCL's buffers, for each communicator: 0.5 to 0.7 GB on 4 GPUs in
// github.com/NVIDIA/nccl/issues/964, 1.6 GB in github.com/NVIDIA/nccl/issues/864.
// `fragmentation_ratio`: what LibTorch's caching allocator reserves above what tensors have. On an
// H100 it reserved 14 to 20 % more (llama3_1b and wan_1_3b under full and attn_only). Within that
// much of the card's memory it gives blocks back and retries, which is slow, or fails. Other cards
// have the same allocator, and nobody has measured them.
struct CardReserve {
  Bytes context;
  Bytes communicator;
  double fragmentation_ratio = 0;
};

inline constexpr CardReserve kUsualReserve{
    Bytes{std::int64_t{512} << 20}, Bytes{std::int64_t{1} << 30}, /*fragmentation_ratio=*/0.2};

struct DeviceSheet {
  std::string_view name;    // "h100"
  std::string_view source;  // which document says so
  Bytes memory;
  // Dense: without structured sparsity.
  double bfloat16_flops_per_second = 0;
  double float32_flops_per_second = 0;  // float32 throughout: no TF32, as LibTorch's default
  double memory_bytes_per_second = 0;
  double pcie_bytes_per_second = 0;  // in one direction
  // To the other cards of a node, in one direction: NVLink, or PCIe where there is none.
  double link_bytes_per_second = 0;
  // Names that the driver gives to cards of these rates: "NVIDIA H100 80GB HBM3".
  std::vector<std::string_view> cards;
  CardReserve reserve = kUsualReserve;
};

const std::vector<DeviceSheet>& device_sheets();

// Null: unknown.
const DeviceSheet* find_device_sheet(std::string_view name);
// By the driver's name of a card.
const DeviceSheet* sheet_of_card(std::string_view card);

// "unknown device 'h10'; did you mean h100? Known are h100, ..."
Rejected unknown_device(std::string_view name);

}  // namespace rematch
