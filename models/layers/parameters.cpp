#include "models/layers/parameters.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/util/BFloat16.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cmath>

#include "kernels/collectives/collectives.h"
#include "models/layers/hash.h"

namespace rematch {
namespace {

// A rank's piece of a parameter. `sizes` is split along one dimension into parts, and the piece is
// a flat range of one part's elements.
struct Piece {
  std::vector<std::int64_t> sizes;  // sizes of the part
  // product of the whole parameter's sizes, from the split dimension on
  std::int64_t outer_stride;
  std::int64_t part_stride;  // the same product for the part
  std::int64_t part_offset;
  std::int64_t first;  // first element, as an index into the part
  std::int64_t count;  // number of elements without padding
  std::int64_t padded_count;

  // Converts an index into the piece to an index into the whole parameter.
  std::int64_t whole_index(std::int64_t index) const {
    const std::int64_t in_part = first + index;
    if (part_stride == outer_stride) return in_part;
    return in_part / part_stride * outer_stride + part_offset + in_part % part_stride;
  }
};

Piece piece_of(at::IntArrayRef sizes, const Held& held, const RankAxis& fsdp) {
  Piece piece{};
  piece.sizes = sizes.vec();
  const auto split = static_cast<std::size_t>(held.dimension);
  TORCH_CHECK(sizes[split] % held.axis.size == 0, held.axis.name, " ", held.axis.size,
              " does not divide dimension ", held.dimension, " of ", sizes);
  piece.sizes[split] /= held.axis.size;
  piece.outer_stride = c10::multiply_integers(sizes.slice(split));
  piece.part_stride = piece.outer_stride / held.axis.size;
  piece.part_offset = held.axis.position * piece.part_stride;
  const std::int64_t total = c10::multiply_integers(piece.sizes);
  piece.padded_count = (total + fsdp.size - 1) / fsdp.size;
  piece.first = std::min(fsdp.position * piece.padded_count, total);
  piece.count = std::min(piece.padded_count, total - piece.first);
  return piece;
}

// The part of a packed parameter that a rank holds. fsdp then shards the concatenated parts.
struct PackedPieces {
  struct Part {
    Piece piece;             // the whole part of this rank, without fsdp
    std::uint64_t seed;      // hash of the part's name
    std::int64_t row;        // number of the part's elements per row of the packed weight
    std::int64_t row_first;  // where these elements begin in the row
  };
  std::vector<Part> parts;
  std::int64_t row = 0;  // product of the packed weight's sizes, from the packed dimension on
  std::vector<std::int64_t> sizes;
  std::int64_t total = 0;

  // Returns the hash's argument for an element of the packed weight.
  std::uint64_t counter_of(std::int64_t index) const {
    const std::int64_t in_row = index % row;
    auto part = parts.begin();
    while (in_row >= part->row_first + part->row) ++part;
    const std::int64_t in_part = index / row * part->row + in_row - part->row_first;
    return part->seed + static_cast<std::uint64_t>(part->piece.whole_index(in_part));
  }
};

PackedPieces packed_pieces_of(const std::vector<PackedPart>& parts, at::IntArrayRef sizes,
                              std::int64_t packed, const Held& held) {
  PackedPieces pieces;
  const auto dimension = static_cast<std::size_t>(packed);
  for (const PackedPart& part : parts) {
    std::vector<std::int64_t> part_sizes = sizes.vec();
    part_sizes[dimension] = part.size;
    const Piece piece = piece_of(part_sizes, held, {});
    const std::int64_t row = c10::multiply_integers(at::IntArrayRef(piece.sizes).slice(dimension));
    const std::int64_t packed_before = pieces.sizes.empty() ? 0 : pieces.sizes[dimension];
    pieces.sizes = piece.sizes;
    pieces.sizes[dimension] += packed_before;
    pieces.parts.push_back({piece, fnv1a64(part.name), row, pieces.row});
    pieces.row += row;
    pieces.total += piece.count;
  }
  return pieces;
}

// Number of values that one task of a parallel fill writes.
constexpr std::int64_t kFilledPerTask = 1 << 14;

// Fills the first `count` elements, and the rest with zeros. counter_of(index) returns the hash's
// argument for an element. The values do not depend on the number of threads, because each value
// depends only on its index.
template <typename Element, typename CounterOf>
void fill_elements(const at::Tensor& tensor, InitialValues values, std::int64_t count,
                   const CounterOf& counter_of) {
  auto* elements = tensor.data_ptr<Element>();
  at::parallel_for(0, count, kFilledPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const float unit = hash_to_signed_unit(splitmix64(counter_of(index)));
      elements[index] = Element(values.centre + values.amplitude * unit);
    }
  });
  std::fill(elements + count, elements + tensor.numel(), Element(0.0F));
}

template <typename CounterOf>
void fill_tensor(const at::Tensor& tensor, std::string_view name, InitialValues values,
                 std::int64_t count, const CounterOf& counter_of) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return fill_elements<float>(tensor, values, count, counter_of);
    case at::kBFloat16:
      return fill_elements<c10::BFloat16>(tensor, values, count, counter_of);
    default:
      TORCH_CHECK(false, "fill_by_hash: unsupported dtype ", tensor.scalar_type(), " for ", name);
  }
}

// Returns "blocks.3" for "blocks.3.attention.wq.weight", and "head" for "head.norm.weight".
std::string top_scope_of(const std::string& name) {
  const std::size_t dot = name.find('.');
  if (!name.starts_with("blocks.")) return name.substr(0, dot);
  return name.substr(0, name.find('.', dot + 1));
}

void fill_piece(const at::Tensor& tensor, std::string_view name, InitialValues values,
                const Piece& piece) {
  const std::uint64_t seed = fnv1a64(name);
  fill_tensor(tensor, name, values, piece.count, [&](std::int64_t index) {
    return seed + static_cast<std::uint64_t>(piece.whole_index(index));
  });
}

}  // namespace

InitialValues uniform_by_fan_in(std::int64_t fan_in) {
  return {0.0F, static_cast<float>(std::sqrt(1.0 / static_cast<double>(fan_in)))};
}

InitialValues near_one() { return {1.0F, 0.125F}; }

InitialValues unit() { return {0.0F, 1.0F}; }

void fill_by_hash(const at::Tensor& tensor, std::string_view name, InitialValues values) {
  TORCH_CHECK(tensor.is_cpu() && tensor.is_contiguous(),
              "fill_by_hash: need a contiguous CPU tensor for ", name);
  fill_piece(tensor, name, values, piece_of(tensor.sizes(), {}, {}));
}

at::ScalarType dtype_of(const ModelSpec& spec) {
  return spec.dtype == "bfloat16" ? at::kBFloat16 : at::kFloat;
}

const at::Tensor& Weight::value() const {
  static const at::Tensor undefined;
  if (holder_ == nullptr) return undefined;
  if (!holder_->is_shard) return holder_->leaf;
  TORCH_CHECK(holder_->gathered.defined(), "parameter ", holder_->name,
              " is used outside the scope that gathers it");
  return holder_->gathered;
}

GatheredWeights::GatheredWeights(const ScopeWeights& weights) : lists_(weights.lists_) {
  for (const ScopeWeights::Lists& lists : *lists_) {
    if (!lists.axis.is_split()) continue;
    gather(lists.learnt, lists.axis);
    gather(lists.frozen, lists.axis);
  }
}

GatheredWeights::~GatheredWeights() {
  for (const ScopeWeights::Lists& lists : *lists_) {
    for (const Weight& weight : lists.learnt) weight.holder_->gathered.reset();
    for (const Weight& weight : lists.frozen) weight.holder_->gathered.reset();
  }
}

void GatheredWeights::gather(const std::vector<Weight>& weights, const RankAxis& axis) {
  if (weights.empty()) return;
  std::vector<at::Tensor> shards;
  for (const Weight& weight : weights) shards.push_back(weight.holder_->leaf);
  std::vector<at::Tensor> values = gather_shards(shards, axis);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    Weight::Holder& holder = *weights[i].holder_;
    const std::int64_t count = c10::multiply_integers(holder.sizes);
    if (values[i].numel() != count) values[i] = values[i].narrow(0, 0, count);
    holder.gathered = values[i].view(holder.sizes);
    values[i].reset();
  }
}

Parameters::Parameters(const ModelSpec& spec, at::Device device)
    : dtype_(dtype_of(spec)),
      device_(device),
      ulysses_(rank_axis(spec, "ulysses")),
      cp_(rank_axis(spec, "cp")),
      ep_(rank_axis(spec, "ep")),
      fsdp_(rank_axis(spec, "fsdp")),
      expert_shards_(expert_shards(spec)),
      tensor_parallel_{rank_axis(spec, "tp"), spec.option("sp") == 1} {}

Weight Parameters::add(const std::string& name, at::IntArrayRef sizes, InitialValues values,
                       const Held& held) {
  if (!frozen_) return add_learning(name, sizes, values, held);
  const Weight weight = make(name, sizes, values, held);
  add_frozen(name, weight, held);
  return weight;
}

Weight Parameters::add_packed(const std::string& name, const std::vector<PackedPart>& parts,
                              at::IntArrayRef sizes, std::int64_t packed, InitialValues values,
                              const Held& held) {
  const RankAxis& shards = shards_of(held);
  const PackedPieces pieces = packed_pieces_of(parts, sizes, packed, held);
  const std::int64_t padded = (pieces.total + shards.size - 1) / shards.size;
  const std::int64_t first = std::min(shards.position * padded, pieces.total);
  const std::int64_t count = std::min(padded, pieces.total - first);
  const auto fill = [&](const at::Tensor& tensor) {
    fill_tensor(tensor, name, values, count,
                [&](std::int64_t index) { return pieces.counter_of(first + index); });
  };
  const Weight weight = make_leaf(name, pieces.sizes, padded, shards.is_split(), fill);
  frozen_ ? add_frozen(name, weight, held) : add_learnt(name, weight, held);
  return weight;
}

Weight Parameters::add_learning(const std::string& name, at::IntArrayRef sizes,
                                InitialValues values, const Held& held) {
  const Weight weight = make(name, sizes, values, held);
  add_learnt(name, weight, held);
  return weight;
}

void Parameters::add_learnt(const std::string& name, const Weight& weight, const Held& held) {
  weight.holder_->leaf.set_requires_grad(true);
  list_.push_back({name, weight.holder_->leaf});
  held_.push_back(held);
  add_to_scope(top_scope_of(name), weight, shards_of(held));
}

void Parameters::add_frozen(const std::string& name, const Weight& weight, const Held& held) {
  frozen_list_.push_back({name, weight.holder_->leaf});
  add_to_scope(top_scope_of(name), weight, shards_of(held));
}

void Parameters::share(const std::string& scope, const Weight& weight) {
  add_to_scope(scope, weight, fsdp_);
}

void Parameters::add_to_scope(const std::string& scope, const Weight& weight,
                              const RankAxis& shards) {
  std::vector<ScopeWeights::Lists>& all = *scopes_[scope].lists_;
  auto lists = std::find_if(all.begin(), all.end(), [&](const ScopeWeights::Lists& each) {
    return each.axis.name == shards.name;
  });
  if (lists == all.end()) lists = all.insert(lists, {shards, {}, {}});
  (weight.holder_->leaf.requires_grad() ? lists->learnt : lists->frozen).push_back(weight);
}

const RankAxis& Parameters::shards_of(const Held& held) const {
  return held.axis.name == "ep" ? expert_shards_ : fsdp_;
}

Weight Parameters::make(const std::string& name, at::IntArrayRef sizes, InitialValues values,
                        const Held& held) {
  const RankAxis& shards = shards_of(held);
  const Piece piece = piece_of(sizes, held, shards);
  return make_leaf(name, piece.sizes, piece.padded_count, shards.is_split(),
                   [&](const at::Tensor& tensor) { fill_piece(tensor, name, values, piece); });
}

Weight Parameters::make_leaf(const std::string& name, std::vector<std::int64_t> sizes,
                             std::int64_t count, bool is_shard,
                             const std::function<void(const at::Tensor&)>& fill) {
  Weight weight;
  weight.holder_ = std::make_shared<Weight::Holder>();
  weight.holder_->name = name;
  weight.holder_->is_shard = is_shard;
  weight.holder_->sizes = std::move(sizes);
  const at::IntArrayRef leaf_sizes =
      is_shard ? at::IntArrayRef(count) : at::IntArrayRef(weight.holder_->sizes);
  const auto options = at::TensorOptions().dtype(dtype_);
  at::Tensor& leaf = weight.holder_->leaf;
  if (device_.is_meta()) {
    leaf = at::empty(leaf_sizes, options.device(device_));
    return weight;
  }
  const at::Tensor filled = at::empty(leaf_sizes, options.device(at::kCPU));
  fill(filled);
  leaf = filled.to(device_);
  return weight;
}

// Under fsdp the gradients are already means over the ranks that shard the parameter, which include
// the ranks of cp. Ranks of ulysses, cp and ep have different losses, so gradients are also
// averaged over those ranks, unless they are inside fsdp. Under ep, gradients of experts already
// contain the sum over all ranks' rows, so they are only divided by the number of ranks.
void Parameters::finish_gradients() const {
  std::vector<at::Tensor> all, not_experts, experts, partial;
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const at::Tensor& gradient = list_[i].tensor.grad();
    if (!gradient.defined()) continue;
    all.push_back(gradient);
    (held_[i].axis.name == "ep" ? experts : not_experts).push_back(gradient);
    if (held_[i].is_partial_over_tp) partial.push_back(gradient);
  }
  const auto reduce_all = [](const std::vector<at::Tensor>& gradients, const RankAxis& axis,
                             collectives::Reduction reduction) {
    if (axis.is_split() && !gradients.empty()) {
      collectives::all_reduce_in_place(gradients, reduction, axis.name);
    }
  };
  reduce_all(partial, tensor_parallel_.axis, collectives::Reduction::kSum);
  reduce_all(all, ulysses_, collectives::Reduction::kMean);
  if (!fsdp_.is_split()) reduce_all(all, cp_, collectives::Reduction::kMean);
  const bool is_inside_fsdp = expert_shards_.name != fsdp_.name;
  if (!is_inside_fsdp) reduce_all(not_experts, ep_, collectives::Reduction::kMean);
  if (!ep_.is_split()) return;
  for (at::Tensor& gradient : experts) gradient.div_(ep_.size);
}

}  // namespace rematch
