// Runs the ranks of layouts one by one in this process. Checks what each rank holds and which ops
// it runs. This works on meta, because a rank need not communicate.
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>

#include <algorithm>

#include "harness/trace/meta_kernels.h"
#include "models/model.h"
#include "tests/models/layouts.h"
#include "tests/models/op_stream.h"
#include "tests/support/catch.h"

using namespace rematch;

namespace {

using Counts = std::map<std::string, int>;  // number of collectives by name

struct StepOps {
  std::vector<std::string> forward, backward;
};

StepOps step_on_meta(const ModelSpec& spec) {
  install_meta_kernels();
  const auto model = make_model(spec, at::kMeta);
  const Batch batch = make_data(spec, "", 1, at::kMeta)->batch(0);
  OpStream forward, backward;
  at::Tensor loss;
  {
    const OpModeGuard guard(&forward);
    loss = model->loss(batch);
  }
  {
    const OpModeGuard guard(&backward);
    loss.backward();
  }
  model->finish_gradients();
  for (const NamedTensor& parameter : model->parameters()) {
    CHECK(parameter.tensor.grad().sizes() == parameter.tensor.sizes());
  }
  return {forward.names(), backward.names()};
}

Counts collectives_of(const std::vector<std::string>& ops) {
  const std::string library = "_c10d_functional::";
  Counts counts;
  for (const std::string& op : ops) {
    if (op.starts_with(library)) ++counts[op.substr(library.size())];
  }
  return counts;
}

constexpr const char* kReduce = "all_reduce";
constexpr const char* kGather = "all_gather_into_tensor";
constexpr const char* kScatter = "reduce_scatter_tensor";
constexpr const char* kExchange = "all_to_all_single";
constexpr const char* kGatherShards = "all_gather_into_tensor_coalesced";
constexpr const char* kScatterShards = "reduce_scatter_tensor_coalesced";
constexpr const char* kWait = "wait_tensor";

// The models have two layers, four heads and four key heads, so worlds of two and four ranks can
// split them.
const std::map<std::string, std::int64_t> kLlama = {{"layers", 2}, {"kv_heads", 4}};

std::vector<LayoutCase> small_cases() {
  const std::map<std::string, std::int64_t> two = {{"layers", 2}};
  return {{"llama_small", "tp=2", kLlama},
          {"llama_small", "tp=4,sp", kLlama},
          {"llama_small", "ulysses=2", kLlama},
          {"llama_small", "cp=4", {{"layers", 2}}},
          {"llama_small", "cp=4,ring", {{"layers", 2}}},
          {"llama_small", "tp=2,sp,ulysses=2,cp=2,ring,fsdp=4", kLlama},
          {"llama_small", "cp=2,fsdp=6", {{"layers", 2}, {"adapter_rank", 4}}},
          {"llama_small", "tp=2,sp,ulysses=2,cp=2,fsdp=4", kLlama},
          {"llama_small", "fsdp=4", {{"layers", 2}, {"tied", 1}}},
          {"llama_small", "fsdp=3", {{"layers", 2}, {"frozen_layers", 1}}},
          {"llama_small", "tp=2,sp,fsdp=2", {{"layers", 2}, {"adapter_rank", 4}}},
          {"llama_small", "tp=2,sp,ulysses=2,fsdp=2", kLlama},
          {"llama_small", "tp=2,sp,fsdp=2", {{"layers", 2}, {"fused_ops", 1}}},
          {"moe_small", "ulysses=2,ep=2", two},
          {"moe_small", "ep=3,balanced_routing,fsdp=2,product", {{"layers", 2}, {"tokens", 96}}},
          {"moe_small", "fsdp=6,ep=3", two},
          {"deepseek_small", "tp=2,sp,fsdp=2,ep=2", two},
          {"deepseek_small", "ep=2,fsdp=2,product", two},
          {"deepseek_small", "tp=2,sp,ulysses=2", two},
          {"wan_small", "ulysses=2,fsdp=2", two},
          {"ltx_small", "ulysses=4", two},
          {"ltx_small", "tp=4,fsdp=2", two},
          {"wan_small", "tp=2,ulysses=2", two},
          {"wan_small", "tp=2,sp,ulysses=2", two},
          {"ltx_small", "tp=4,sp,fsdp=2", {{"layers", 2}, {"batch", 1}}},
          {"moe_small", "tp=2,sp,ep=2", two},
          {"llama_small", "tp=2,sp,cp=2,fsdp=2", {{"layers", 2}, {"packed_weights", 1}}},
          {"wan_small", "tp=2,ulysses=2", {{"layers", 2}, {"packed_weights", 1}}},
          {"moe_small", "fsdp=6,ep=3", {{"layers", 2}, {"packed_weights", 1}, {"fused_ops", 1}}},
          {"ltx_small", "fsdp=3", {{"layers", 2}, {"fused_ops", 1}}}};
}

// Concatenates the pieces of a parameter that the ranks hold. Returns the whole parameter.
at::Tensor put_together(const std::vector<at::Tensor>& pieces, const at::Tensor& whole,
                        bool are_flat) {
  if (are_flat) return at::cat(pieces).narrow(0, 0, whole.numel()).view(whole.sizes());
  for (std::int64_t dim = 0; dim < whole.dim(); ++dim) {
    if (pieces.front().size(dim) != whole.size(dim)) return at::cat(pieces, dim);
  }
  return pieces.front();
}

}  // namespace

TEST_CASE("each rank holds exactly its slices of the parameters of the unsplit model") {
  for (const LayoutCase& which :
       std::vector<LayoutCase>{{"llama_small", "tp=2", {{"layers", 1}, {"adapter_rank", 3}}},
                               {"llama_small", "fsdp=3", {{"layers", 1}, {"tied", 1}}},
                               {"moe_small", "ep=3", {{"layers", 2}}},
                               {"deepseek_small", "fsdp=4", {{"layers", 2}}},
                               {"wan_small", "fsdp=4", {{"layers", 1}}}}) {
    for (const char* dtype : {"float32", "bfloat16"}) {
      CAPTURE(which.preset, which.layout, dtype);
      const auto one =
          make_model(spec_of({which.preset, "", which.dimensions}, 0, dtype), at::kCPU);
      std::vector<std::unique_ptr<Model>> ranks;
      const auto world = static_cast<int>(world_size(spec_of(which, 0)));
      for (int rank = 0; rank < world; ++rank) {
        ranks.push_back(make_model(spec_of(which, rank, dtype), at::kCPU));
      }
      for (const bool frozen : {false, true}) {
        const auto list = [frozen](const Model& model) -> const std::vector<NamedTensor>& {
          return frozen ? model.frozen() : model.parameters();
        };
        REQUIRE(list(*ranks.front()).size() == list(*one).size());
        for (std::size_t i = 0; i < list(*one).size(); ++i) {
          const NamedTensor& whole = list(*one)[i];
          CAPTURE(whole.name);
          std::vector<at::Tensor> pieces;
          for (const auto& rank : ranks) {
            CHECK(list(*rank)[i].name == whole.name);
            CHECK(list(*rank)[i].tensor.requires_grad() == !frozen);
            pieces.push_back(list(*rank)[i].tensor.detach());
          }
          const bool are_flat = which.layout.starts_with("fsdp");
          CHECK(at::equal(put_together(pieces, whole.tensor, are_flat), whole.tensor));
        }
      }
    }
  }
}

TEST_CASE("the padding of a parameter's shard is zero") {
  const LayoutCase which{"llama_small", "fsdp=3", {{"layers", 1}}};
  // The norm has 128 weights. Two shards hold 43 weights; the third holds 42 and one element of
  // padding.
  const auto last = make_model(spec_of(which, 2), at::kCPU);
  const at::Tensor shard = last->parameters()[1].tensor;
  REQUIRE(shard.numel() == 43);
  CHECK(shard[42].item<float>() == 0.0F);
  CHECK(shard[41].item<float>() != 0.0F);
}

// A linear that is split by outputs must sum the gradient of its input. A linear that is split by
// inputs must sum its output.
TEST_CASE("tensor parallel layers run two reductions in each direction") {
  for (const int rank : {0, 1}) {
    const StepOps ops = step_on_meta(spec_of({"llama_small", "tp=2", kLlama}, rank));
    CHECK(collectives_of(ops.forward) == Counts{{kReduce, 4}, {kWait, 4}});
    CHECK(collectives_of(ops.backward) == Counts{{kReduce, 4}, {kWait, 4}});
  }
}

// A video block consists of three parts with split linears. One part also reads the text. The four
// norms over all heads sum their squares over the ranks.
TEST_CASE("tensor parallel video blocks sum the squares of norms over all heads") {
  for (const char* preset : {"wan_small", "ltx_small"}) {
    CAPTURE(preset);
    const StepOps ops = step_on_meta(spec_of({preset, "tp=2", {{"layers", 2}}}, 1));
    CHECK(collectives_of(ops.forward) == Counts{{kReduce, 14}, {kWait, 14}});
    CHECK(collectives_of(ops.backward) == Counts{{kReduce, 16}, {kWait, 16}});
  }
}

// The head gathers the rows that the last block scatters. Backward gathers the gradient of the
// embedding.
TEST_CASE("sequence parallel layers gather and scatter instead of reducing") {
  for (const int rank : {0, 3}) {
    const StepOps ops = step_on_meta(spec_of({"llama_small", "tp=4,sp", kLlama}, rank));
    CHECK(collectives_of(ops.forward) == Counts{{kGather, 5}, {kScatter, 4}, {kWait, 9}});
    CHECK(collectives_of(ops.backward) == Counts{{kGather, 5}, {kScatter, 4}, {kWait, 9}});
  }
}

// Sequence parallelism does not split the text or the norms over all heads, so these still use
// all-reduces. Backward has one more all-reduce, for the modulation that all blocks read.
TEST_CASE(
    "sequence parallel video blocks gather and scatter, and use all-reduces for norms and text") {
  for (const char* preset : {"wan_small", "ltx_small"}) {
    for (const std::int64_t batch : {1, 2}) {
      CAPTURE(preset, batch);
      const StepOps ops =
          step_on_meta(spec_of({preset, "tp=2,sp", {{"layers", 2}, {"batch", batch}}}, 1));
      CHECK(collectives_of(ops.forward) ==
            Counts{{kGather, 7}, {kScatter, 6}, {kReduce, 8}, {kWait, 21}});
      CHECK(collectives_of(ops.backward) ==
            Counts{{kGather, 7}, {kScatter, 6}, {kReduce, 11}, {kWait, 24}});
    }
  }
}

TEST_CASE("ulysses exchanges queries, keys, values and results, but not text") {
  for (const char* preset : {"llama_small", "wan_small", "ltx_small"}) {
    CAPTURE(preset);
    std::map<std::string, std::int64_t> dimensions = {{"layers", 3}};
    const StepOps ops = step_on_meta(spec_of({preset, "ulysses=2", dimensions}, 1));
    CHECK(collectives_of(ops.forward) == Counts{{kExchange, 12}, {kWait, 12}});
    CHECK(collectives_of(ops.backward) == Counts{{kExchange, 12}, {kWait, 12}});
  }
}

// Keys and values are gathered separately.
TEST_CASE("context parallel attention gathers keys and values, and scatters their gradients") {
  for (const int rank : {0, 3}) {
    const StepOps ops = step_on_meta(spec_of({"llama_small", "cp=4", {{"layers", 3}}}, rank));
    CHECK(collectives_of(ops.forward) == Counts{{kGather, 6}, {kWait, 6}});
    CHECK(collectives_of(ops.backward) == Counts{{kScatter, 6}, {kWait, 6}});
  }
}

// Keys and values travel three times. Their gradients travel four times in backward, so that they
// return to their rank.
TEST_CASE("ring attention sends keys, values and their gradients around the ranks") {
  for (const int rank : {0, 2}) {
    const StepOps ops = step_on_meta(spec_of({"llama_small", "cp=4,ring", {{"layers", 3}}}, rank));
    CHECK(collectives_of(ops.forward) == Counts{{kExchange, 9}, {kWait, 9}});
    CHECK(collectives_of(ops.backward) == Counts{{kExchange, 21}, {kWait, 21}});
  }
}

// Embedding, two blocks and head each gather their shards with one collective. In llama these
// scopes have 1, 9, 9 and 2 weights.
TEST_CASE(
    "for each scope, one collective gathers the shards and one collective scatters the gradients") {
  const StepOps ops = step_on_meta(spec_of({"llama_small", "fsdp=64", {{"layers", 2}}}, 63));
  CHECK(collectives_of(ops.forward) == Counts{{kGatherShards, 4}, {kWait, 21}});
  CHECK(collectives_of(ops.backward) == Counts{{kScatterShards, 4}, {kWait, 21}});
}

// The embedding and one block are frozen. The 10 frozen weights are gathered separately, without
// gradients.
TEST_CASE("frozen shards are gathered without gradients") {
  const StepOps ops =
      step_on_meta(spec_of({"llama_small", "fsdp=2", {{"layers", 2}, {"frozen_layers", 1}}}, 0));
  CHECK(collectives_of(ops.forward) == Counts{{kGatherShards, 4}, {kWait, 21}});
  CHECK(collectives_of(ops.backward) == Counts{{kScatterShards, 2}, {kWait, 11}});
}

// Forward exchanges three things: counts, rows to the experts, and rows back. Counts have no
// gradient.
TEST_CASE("the rows of experts are exchanged three times in forward and twice in backward") {
  for (const char* layout : {"ep=2", "ep=3,balanced_routing"}) {
    const StepOps ops =
        step_on_meta(spec_of({"moe_small", layout, {{"layers", 4}, {"tokens", 96}}}, 1));
    CHECK(collectives_of(ops.forward) == Counts{{kExchange, 6}, {kWait, 6}});
    CHECK(collectives_of(ops.backward) == Counts{{kExchange, 4}, {kWait, 4}});
  }
}

// A moe model has these weights: 1 in the embedding, 9 in the block with a feed-forward, 10 in the
// block with experts besides the 3 weights of the experts, and 2 in the head. Every scope gathers
// its weights with one collective over fsdp. Only where ep is smaller than fsdp do the experts have
// a gather of their own.
TEST_CASE("experts inside fsdp are gathered by the ranks that hold the same experts") {
  const auto step = [](const char* layout) {
    return step_on_meta(spec_of({"moe_small", layout, {{"layers", 2}}}, 1));
  };
  const StepOps shared = step("fsdp=6,ep=3");
  CHECK(collectives_of(shared.forward) ==
        Counts{{kGatherShards, 5}, {kExchange, 3}, {kWait, 22 + 3 + 3}});
  CHECK(collectives_of(shared.backward) ==
        Counts{{kScatterShards, 5}, {kExchange, 2}, {kWait, 22 + 3 + 2}});
  const StepOps whole = step("fsdp=3,ep=3");
  CHECK(collectives_of(whole.forward) ==
        Counts{{kGatherShards, 4}, {kExchange, 3}, {kWait, 22 + 3}});
  CHECK(collectives_of(whole.backward) ==
        Counts{{kScatterShards, 4}, {kExchange, 2}, {kWait, 22 + 2}});
  const StepOps product = step("fsdp=2,ep=3,product");
  CHECK(collectives_of(product.forward) ==
        Counts{{kGatherShards, 4}, {kExchange, 3}, {kWait, 22 + 3 + 3}});
}

// One of six ranks holds a sixth of each dense parameter. Three ranks split the six experts, and
// two ranks share these, so a rank holds half the weights of two experts: also a sixth.
TEST_CASE("ranks of fsdp hold shards of all dense weights and of the experts of their group") {
  const std::map<std::string, std::int64_t> sizes = {{"layers", 2}, {"dim", 96}, {"ffn", 384}};
  const auto whole = make_model(spec_of({"moe_small", "", sizes}, 0), at::kCPU);
  std::vector<std::unique_ptr<Model>> ranks;
  for (int rank = 0; rank < 6; ++rank) {
    ranks.push_back(make_model(spec_of({"moe_small", "fsdp=6,ep=3", sizes}, rank), at::kCPU));
  }
  int num_experts = 0;
  for (std::size_t i = 0; i < whole->parameters().size(); ++i) {
    const NamedTensor& parameter = whole->parameters()[i];
    CAPTURE(parameter.name);
    std::vector<at::Tensor> pieces(6);
    for (int rank = 0; rank < 6; ++rank) {
      const at::Tensor piece = ranks[rank]->parameters()[i].tensor.detach();
      CHECK(piece.numel() == parameter.tensor.numel() / 6);
      const bool are_experts = parameter.name.find(".experts.") != std::string::npos;
      num_experts += are_experts ? 1 : 0;
      // rank 4 is the second rank of those that hold experts 2 and 3
      pieces[are_experts ? rank % 3 * 2 + rank / 3 : rank] = piece;
    }
    CHECK(at::cat(pieces).equal(parameter.tensor.detach().view(-1)));
  }
  CHECK(num_experts == 3 * 6);
}

TEST_CASE("each rank of a layout runs the same ops, and each of its parameters gets a gradient") {
  for (const LayoutCase& which : small_cases()) {
    CAPTURE(which.preset, which.layout);
    const auto world = static_cast<int>(world_size(spec_of(which, 0)));
    const StepOps first = step_on_meta(spec_of(which, 0));
    const StepOps last = step_on_meta(spec_of(which, world - 1));
    CHECK(first.forward == last.forward);
    CHECK(first.backward == last.backward);
  }
}

// Wide matrices are cut into 64 pieces, the weights of norms into 8.
TEST_CASE("each of 64 ranks holds a sixty-fourth of a model with 70 billion parameters") {
  const LayoutCase which{"llama3_70b", "tp=8,sp,fsdp=8", {}};
  const auto elements = [](const Model& model) {
    std::int64_t count = 0;
    for (const NamedTensor& parameter : model.parameters()) count += parameter.tensor.numel();
    return count;
  };
  const std::int64_t whole = elements(*make_model(spec_of({"llama3_70b", "", {}}, 0), at::kMeta));
  const std::int64_t of_rank = elements(*make_model(spec_of(which, 63), at::kMeta));
  // tp does not split embedding and head (2 x 128,256 x 8192) or the 161 norms of 8192 weights.
  const std::int64_t left_whole = 2LL * 128'256 * 8192 + 161 * 8192;
  CHECK(of_rank == (whole - left_whole) / 64 + left_whole / 8);
}
