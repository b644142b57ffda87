// The task of a child process: the hidden subcommand `point` reads it from a file.
// Internal to one build of the tool, so its JSON carries no version.
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
struct VariantSettings;

enum class Pass : std::uint8_t {
  kExact,   // parity, then counts, then memory: figures that repeat to the last bit
  kParity,  // the first of them alone: bits of each step
  kTime,    // no observer, no hook, LibTorch's own allocator
};
template <>
inline constexpr std::array<std::string_view, 3> kWords<Pass> = {"exact", "parity", "time"};

struct PointRequest {
  Pass pass = Pass::kExact;
  PointIdentity identity;  // seed, schedule, optimizer and threads are read from it
  std::string policy;
  std::string device = "cpu";
  ModelFamily family = ModelFamily::kLlama;
  std::string data_file;
  Plan plan;  // without regions: no recording at all
  int num_steps = 1;
  std::string snapshot_file;  // of the CUDA allocator, after the exact pass; empty: none
  Determinism timed_as = Determinism::kFastest;  // of the time pass
  bool libtorch_chooses_attention = false;  // of the time pass on CUDA; else it is the identity's
};

// For a pass over a variant that these settings made.
PointRequest request_for(const VariantSettings& settings, const Variant& variant, Pass pass,
                         int num_steps);

// A record that says which point it is of, and nothing more.
PointRecord empty_record(const PointRequest& request);

ModelSpec spec_of(const PointRequest& request);

Json request_to_json(const PointRequest& request);
PointRequest request_from_json(const Json& json);  // throws FormatError

}  // namespace rematch
