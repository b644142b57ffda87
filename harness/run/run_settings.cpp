#include "harness/run/run_settings.h"

#include <utility>

#include "harness/measure/memory.h"
#include "harness/training/device.h"

namespace rematch {

std::variant<AttentionChoice, Rejected> choose_attention(const std::string& asked_for,
                                                         const std::string& device,
                                                         const std::string& dtype) {
  auto backend = usable_attention(asked_for, device, dtype);
  if (auto* rejected = std::get_if<Rejected>(&backend)) return *rejected;
  return AttentionChoice{std::get<std::string>(std::move(backend)),
                         asked_for.empty() && names_cuda(device)};
}

std::variant<RunSettings, Rejected> settings_here(RunRequest request) {
  const auto device = usable_device(request.device);
  if (const auto* rejected = std::get_if<Rejected>(&device)) return *rejected;
  auto allocator = allocator_of(request.device, request.allocator, allocator_configuration());
  if (auto* rejected = std::get_if<Rejected>(&allocator)) return *rejected;
  auto attention = choose_attention(request.attention, request.device, request.model.dtype);
  if (auto* rejected = std::get_if<Rejected>(&attention)) return *rejected;
  RunSettings settings;
  settings.allocator = std::get<std::string>(std::move(allocator));
  settings.attention = std::get<AttentionChoice>(attention).backend;
  settings.libtorch_chooses_attention = std::get<AttentionChoice>(attention).libtorch_chooses;
  if (names_cuda(request.device)) settings.round = kCudaRounding;
  settings.children = {request.timeout, request.num_retries, nullptr};
  settings.request = std::move(request);
  return settings;
}

}  // namespace rematch
