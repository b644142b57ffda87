// Creates a model's parameters, in order, with their names and initial values, which are
// reproducible to the bit in any language.
//
// Note [Hash initialisation]
// Element i of parameter `name` (row-major) is, all in float32:
//   u = (top 24 bits of splitmix64(fnv1a64(name) + i) - 2^23) * 2^-23     exact, in [-1, 1)
//   value = centre + amplitude * u
// with wrapping 64-bit integers. `amplitude` is 1, or sqrt(1 / fan_in) computed in double and
// rounded to float32, where centre is 0, and 2^-3 where centre is 1, so that one rounding happens
// at most. bfloat16 parameters hold that value rounded to nearest, ties to even.
//
// Note [Shards of parameters]
// A rank holds what its layout gives it of a parameter, at its place in the whole one: a part along
// one dimension (tp, ep), and under fsdp a flat piece of that, ceil(elements / ranks) long and
// padded with zeros. Pieces are put together for a top-level scope ("embed", "blocks.3", "head") at
// once, at its start, so that a region around the scope's ops can gather them again; they are
// dropped at its end.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/layers/collectives.h"
#include "models/model.h"

namespace rematch {

struct InitialValues {
  float centre = 0.0F;
  float amplitude = 0.0F;
};

InitialValues uniform_by_fan_in(std::int64_t fan_in);
InitialValues near_one();
// Between -1 and 1. An embedding of this size outweighs what the first blocks add to every token
// alike, or a router would send all tokens to the same experts.
InitialValues unit();

// Fills a contiguous float32 or bfloat16 CPU tensor.
void fill_by_hash(const at::Tensor& tensor, std::string_view name, InitialValues values);

at::ScalarType dtype_of(const ModelSpec& spec);

// A parameter as layers use it; a handle. Under fsdp its value is there while its scope's weights
// are gathered.
class Weight {
 public:
  Weight() = default;  // none: its value is undefined
  const at::Tensor& value() const;
  operator const at::Tensor&() const { return value(); }  // NOLINT: layers take tensors
  bool defined() const { return holder_ != nullptr; }

 private:
  friend class Parameters;
  friend class GatheredWeights;
  struct Holder {
    std::string name;
    at::Tensor leaf;
    bool is_shard = false;
    std::vector<std::int64_t> sizes;  // of the value
    at::Tensor gathered;              // undefined while its scope is closed
  };
  std::shared_ptr<Holder> holder_;
};

// The part that a rank holds of a parameter, and of which of its gradients.
struct Held {
  // A part along a dimension, of as many as the axis has ranks.
  std::int64_t dimension = 0;
  RankAxis axis;
  // Applied to a part of what tp's ranks have together: its gradients are summed over them.
  bool is_partial_over_tp = false;
};

// The weights of one top-level scope; a handle.
class ScopeWeights {
 private:
  friend class Parameters;
  friend class GatheredWeights;
  struct Lists {
    RankAxis axis;
    std::vector<Weight> learnt, frozen;
  };
  std::shared_ptr<Lists> lists_ = std::make_shared<Lists>();
};

// While it lives, the weights of a scope have values. Without fsdp they always have, and it runs no
// op; under it one collective for those that learn and one for those that do not, and a view each.
class GatheredWeights {
 public:
  explicit GatheredWeights(const ScopeWeights& weights);
  ~GatheredWeights();
  GatheredWeights(const GatheredWeights&) = delete;
  GatheredWeights& operator=(const GatheredWeights&) = delete;

 private:
  static void gather(const std::vector<Weight>& weights, const RankAxis& axis);
  std::shared_ptr<ScopeWeights::Lists> lists_;
};

class Parameters {
 public:
  Parameters(const ModelSpec& spec, at::Device device);
  // For a model on one rank.
  Parameters(at::ScalarType dtype, at::Device device) : dtype_(dtype), device_(device) {}

  // A leaf that requires grad, unless weights are frozen. On meta it has no data; elsewhere it is
  // filled by hash of its name. `sizes` are the whole parameter's.
  Weight add(const std::string& name, at::IntArrayRef sizes, InitialValues values,
             const Held& held = {});
  // One that learns even where weights are frozen.
  Weight add_learning(const std::string& name, at::IntArrayRef sizes, InitialValues values,
                      const Held& held = {});

  // Whether weights added from here on are constants.
  void set_frozen(bool frozen) { frozen_ = frozen; }

  // Weights by the scope that their names begin with, those added later too.
  ScopeWeights scope(const std::string& name) { return scopes_[name]; }
  // A weight of another scope that this one uses as well.
  void share(const std::string& scope, const Weight& weight);

  // After backward: every rank's gradients become those of the mean loss of all ranks, in place.
  // The same collectives in the same order on each; none without a layout that needs them.
  void finish_gradients() const;

  const std::vector<NamedTensor>& list() const { return list_; }                // these learn
  const std::vector<NamedTensor>& frozen_list() const { return frozen_list_; }  // these do not
  at::Device device() const { return device_; }
  const TensorParallel& tensor_parallel() const { return tensor_parallel_; }

 private:
  Weight make(const std::string& name, at::IntArrayRef sizes, InitialValues values,
              const Held& held);
  void add_to_scope(const std::string& scope, const Weight& weight);

  at::ScalarType dtype_;
  at::Device device_;
  RankAxis ulysses_, ep_, fsdp_;
  TensorParallel tensor_parallel_;
  bool frozen_ = false;
  std::vector<NamedTensor> list_, frozen_list_;
  std::vector<Held> held_;  // of those that learn
  std::map<std::string, ScopeWeights> scopes_;
};

}  // namespace rematch
