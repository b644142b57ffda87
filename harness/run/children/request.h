// The task of a child process, which the hidden subcommand `point` reads from a file. The JSON has
// no version, because the same build writes and reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/training/training.h"
#include "models/preset/preset.h"
#include "policies/base/json_fwd.h"
#include "policies/plan/plan.h"
#include "reports/record/point.h"

namespace rematch {

struct Variant;
struct RunSettings;

enum class Pass : std::uint8_t {
  kExact,   // the parity, counts and memory passes, which give identical results in every run
  kParity,  // only the parity pass, which records hashes of each step's tensors
  kTime,    // the time pass, without observers and hooks, with LibTorch's own allocator
};
template <>
inline constexpr std::array<std::string_view, 3> kWords<Pass> = {"exact", "parity", "time"};

struct PointRequest {
  Pass pass = Pass::kExact;
  PointIdentity identity;  // also contains the seed, schedule, optimizer and threads
  std::string policy;
  std::string device = "cpu";
  ModelFamily family = ModelFamily::kLlama;
  std::string data_file;
  Plan plan;  // by default a plan without regions
  int num_steps = 1;
  std::string snapshot_file;  // CUDA allocator snapshot of the exact pass; may be empty
  Determinism timed_as = Determinism::kFastest;  // kernels of the time pass
  // Whether LibTorch chooses the attention backend in the time pass on CUDA. If false, the pass
  // uses the backend that the identity names.
  bool libtorch_chooses_attention = false;
  bool cuda_graph = false;  // the time pass replays a captured step; the exact pass checks its bits
};

// Returns the request for one pass over `variant`, which must have been made with `settings`.
PointRequest request_for(const RunSettings& settings, const Variant& variant, Pass pass,
                         int num_steps);

// Returns a record that contains only the identity of the point.
PointRecord empty_record(const PointRequest& request);

ModelSpec spec_of(const PointRequest& request);

Json request_to_json(const PointRequest& request);
PointRequest request_from_json(const Json& json);  // throws FormatError

}  // namespace rematch
