// The inputs of a point, and the key computed from them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "policies/base/json_fwd.h"
#include "policies/base/record_fields.h"
#include "policies/plan/plan.h"
#include "policies/plan/plan_json.h"

namespace rematch {

// The inputs that determine a point. Contains every input that can change a count, a byte or a bit,
// and nothing else. The point's key is the hash of its identity.
struct PointIdentity {
  std::string model;                               // name of the model's preset
  std::map<std::string, std::int64_t> dimensions;  // all dimensions, including defaults
  std::string data;                                // training data: "builtin" or "sha256:<hex>"
  // must be below 2^53, because other JSON readers parse numbers as doubles
  std::uint64_t seed = 0;
  std::string plan_sha256;
  Schedule schedule = Schedule::kOnDemand;
  std::string ops = "eager";                // "eager" or "fused"
  std::string attention_backend = "flash";  // "flash", "cudnn", "efficient" or "math"
  std::string dtype;                        // "float32"
  std::string optimizer;                    // name of the optimizer, such as "adamw" or "none"
  bool deterministic = true;
  // name of the allocator, such as "cpu_counting", "meta_counting" or "cuda_caching"
  std::string allocator;
  int threads = 1;
  int world = 1;
  std::optional<int> pretended_rank;  // the simulated rank; absent if all ranks really ran
  bool operator==(const PointIdentity&) const = default;
};

template <RecordOf<PointIdentity> Identity, class Visit>
void visit_fields(Identity& identity, Visit visit) {
  visit("model", identity.model);
  visit("dimensions", identity.dimensions);
  visit({"dtype", kColumn}, identity.dtype);
  visit({"ops", kColumn}, identity.ops);
  visit({"attention_backend", kColumn}, identity.attention_backend);
  visit({"optimizer", kColumn}, identity.optimizer);
  visit({"data", kColumn}, identity.data);
  visit({"seed", kColumn}, identity.seed);
  visit({"threads", kColumn}, identity.threads);
  visit({"world", kColumn}, identity.world);
  visit({"pretended_rank", kLater | kOmitIfEmpty}, identity.pretended_rank);
  visit("plan_sha256", identity.plan_sha256);
  visit("schedule", identity.schedule);
  visit("deterministic", identity.deterministic);
  visit("allocator", identity.allocator);
}

// Returns the SHA-256, in hex, of the identity's canonical JSON.
std::string point_key(const PointIdentity& identity);

// Returns a label of an identity. Two labels are equal if all fields except those named in `but`
// are equal. Computing a label is faster than computing the key.
std::string label_of(const PointIdentity& identity, std::initializer_list<std::string_view> but);

}  // namespace rematch
