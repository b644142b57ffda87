// Creates a model's parameters in a fixed order, with their names and initial values. The values
// are reproducible to the bit in any language.
//
// Note [Hash initialisation]
// Element i of parameter `name` (row-major) is, all in float32:
//   u = (top 24 bits of splitmix64(fnv1a64(name) + i) - 2^23) * 2^-23     exact, in [-1, 1)
//   value = centre + amplitude * u
// Integers have 64 bits and wrap. If centre is 0, `amplitude` is 1, or sqrt(1 / fan_in) computed in
// double and rounded to float32. If centre is 1, `amplitude` is 2^-3. So `value` is rounded at most
// once. bfloat16 parameters hold `value` rounded to nearest, ties to even.
//
// Note [Shards of parameters] A rank holds a piece of each parameter. tp and ep split the parameter
// along one dimension. fsdp flattens the resulting part and splits it into pieces of ceil(elements
// / ranks) elements, padded with zeros. When a top-level scope ("embed", "blocks.3", "head") opens,
// all of its pieces are gathered at once. A region around the scope's ops can therefore repeat the
// gather. The gathered weights are freed at the end of the scope. If ep is inside fsdp, fewer ranks
// shard the experts than the other parameters (Note [Experts inside fsdp]), so the experts of a
// scope have a gather of their own.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
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
// Returns uniform values between -1 and 1, for embeddings. The first blocks add nearly the same
// values to every token. Smaller embeddings would be lost among these values, and a router would
// then send all tokens to the same experts.
InitialValues unit();

// Fills a contiguous float32 or bfloat16 CPU tensor. Throws c10::Error for any other tensor.
void fill_by_hash(const at::Tensor& tensor, std::string_view name, InitialValues values);

at::ScalarType dtype_of(const ModelSpec& spec);

// A layer's handle to a parameter. Under fsdp the parameter has a value only while its scope's
// weights are gathered. At other times value() throws c10::Error.
class Weight {
 public:
  Weight() = default;  // a handle without a weight
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
    std::vector<std::int64_t> sizes;  // sizes of value()
    at::Tensor gathered;              // undefined while the weight's scope is closed
  };
  std::shared_ptr<Holder> holder_;
};

// Which part of a parameter a rank holds, and whether its gradient is partial.
struct Held {
  // The dimension along which the parameter is split into one part per rank of the axis.
  std::int64_t dimension = 0;
  RankAxis axis;
  // True if each rank of tp applies the parameter to only some of the tokens, heads or columns. The
  // gradients must then be summed over tp.
  bool is_partial_over_tp = false;
};

// A part of a packed parameter. `size` counts the part's elements along the packed dimension. The
// values are those of a parameter called `name`.
struct PackedPart {
  std::string name;
  std::int64_t size = 0;
};

// A handle to the weights of one top-level scope.
class ScopeWeights {
 private:
  friend class Parameters;
  friend class GatheredWeights;
  struct Lists {
    RankAxis axis;  // the ranks that shard these weights
    std::vector<Weight> learnt, frozen;
  };
  // the lists of one scope, one entry for each axis
  std::shared_ptr<std::vector<Lists>> lists_ = std::make_shared<std::vector<Lists>>();
};

// Makes the weights of a scope available while this object exists. Under fsdp, runs one collective
// for the trained weights, one for the frozen weights, and a view for each weight. If ep is inside
// fsdp, the experts have collectives of their own. Without fsdp, runs no op, because the weights
// are always available.
class GatheredWeights {
 public:
  explicit GatheredWeights(const ScopeWeights& weights);
  ~GatheredWeights();
  GatheredWeights(const GatheredWeights&) = delete;
  GatheredWeights& operator=(const GatheredWeights&) = delete;

 private:
  static void gather(const std::vector<Weight>& weights, const RankAxis& axis);
  std::shared_ptr<std::vector<ScopeWeights::Lists>> lists_;
};

class Parameters {
 public:
  Parameters(const ModelSpec& spec, at::Device device);
  // Makes the parameters of a model on one rank.
  Parameters(at::ScalarType dtype, at::Device device) : dtype_(dtype), device_(device) {}

  // Adds a leaf. The leaf requires grad unless weights are frozen. Its values come from the hash of
  // its name; on meta it has no data. `sizes` are the sizes of the whole parameter.
  Weight add(const std::string& name, at::IntArrayRef sizes, InitialValues values,
             const Held& held = {});
  // Adds a leaf that concatenates `parts` along dimension `packed`. `sizes` are the sizes of a
  // part; each part replaces sizes[packed] by its own size. Each part is split over the ranks as a
  // parameter of its own, so a rank's weight concatenates the rank's shares.
  Weight add_packed(const std::string& name, const std::vector<PackedPart>& parts,
                    at::IntArrayRef sizes, std::int64_t packed, InitialValues values,
                    const Held& held = {});
  // Adds a leaf that requires grad even if weights are frozen.
  Weight add_learning(const std::string& name, at::IntArrayRef sizes, InitialValues values,
                      const Held& held = {});

  // Sets whether later add() calls create frozen weights.
  void set_frozen(bool frozen) { frozen_ = frozen; }

  // Returns the weights whose names begin with this scope, including weights that are added later.
  ScopeWeights scope(const std::string& name) { return scopes_[name]; }
  // Registers a weight that belongs to another scope but is also used in this scope.
  void share(const std::string& scope, const Weight& weight);

  // Replaces every rank's gradients, in place, by gradients of the mean loss of all ranks. Call
  // this after backward, on every rank.
  void finish_gradients() const;

  const std::vector<NamedTensor>& list() const { return list_; }                // trained
  const std::vector<NamedTensor>& frozen_list() const { return frozen_list_; }  // frozen
  at::Device device() const { return device_; }
  const TensorParallel& tensor_parallel() const { return tensor_parallel_; }

 private:
  // Makes a leaf on the model's device. `sizes` are those of this rank's value. The leaf has
  // `count` elements, or the value's sizes if the weight is not sharded.
  Weight make_leaf(const std::string& name, std::vector<std::int64_t> sizes, std::int64_t count,
                   bool is_shard, const std::function<void(const at::Tensor&)>& fill);
  Weight make(const std::string& name, at::IntArrayRef sizes, InitialValues values,
              const Held& held);
  void add_learnt(const std::string& name, const Weight& weight, const Held& held);
  void add_frozen(const std::string& name, const Weight& weight, const Held& held);
  void add_to_scope(const std::string& scope, const Weight& weight, const RankAxis& shards);
  // Returns the axis along which a parameter is sharded.
  const RankAxis& shards_of(const Held& held) const;

  at::ScalarType dtype_;
  at::Device device_;
  RankAxis ulysses_, cp_, ep_, fsdp_, expert_shards_;
  TensorParallel tensor_parallel_;
  bool frozen_ = false;
  std::vector<NamedTensor> list_, frozen_list_;
  std::vector<Held> held_;  // one entry per trained parameter
  std::map<std::string, ScopeWeights> scopes_;
};

}  // namespace rematch
