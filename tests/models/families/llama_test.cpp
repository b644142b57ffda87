
#include "tests/models/model_checks.h"
#include "tests/models/plain_language.h"
#include "tests/support/catch.h"

using namespace rematch;

namespace {

using Dimensions = std::map<std::string, std::int64_t>;

ModelSpec reduced(const Dimensions& more) {
  Dimensions dimensions = {{"layers", 2}, {"dim", 64},  {"heads", 4},  {"kv_heads", 2},
                           {"ffn", 48},   {"batch", 2}, {"tokens", 33}};
  dimensions.insert(more.begin(), more.end());
  return spec_of("llama_small", dimensions);
}

}  // namespace

TEST_CASE("Llama's loss and gradients equal the results of plain code in double") {
  check_against_plain_language(reduced({}));
  check_against_plain_language(reduced({{"tied", 1}}));
}

// The model has 3 layers x 9 parameters + embedding + norm + head. A tied head uses the weight of
// the embedding.
TEST_CASE("a tied head has no weight of its own") {
  CHECK(make_model(spec_of("llama_small", {{"layers", 3}}), at::kMeta)->parameters().size() == 30);
  CHECK(make_model(spec_of("llama_small", {{"layers", 3}, {"tied", 1}}), at::kMeta)
            ->parameters()
            .size() == 29);
}

TEST_CASE("freezing the first layers does not change the loss or the other gradients") {
  check_against_plain_language(reduced({{"frozen_layers", 1}}));
  const auto model = make_model(reduced({{"frozen_layers", 1}}), at::kMeta);
  CHECK(model->parameters().size() == 9 + 2);
  CHECK(model->frozen().size() == 9 + 1);
  CHECK(model->parameters().front().name == "blocks.1.attention_norm.weight");
  CHECK(model->frozen().front().name == "embed.weight");
  for (const NamedTensor& weight : model->frozen()) CHECK_FALSE(weight.tensor.requires_grad());
}

// Each block has 7 linears, and each adapter has 2 matrices.
TEST_CASE(
    "only the low-rank adapters are trained, and they act as if added to the frozen weights") {
  check_against_plain_language(reduced({{"adapter_rank", 3}}));
  const auto model = make_model(reduced({{"adapter_rank", 3}}), at::kMeta);
  CHECK(model->parameters().size() == 2 * 7 * 2);
  CHECK(model->frozen().size() == 2 * 9 + 3);
  for (const NamedTensor& parameter : model->parameters()) {
    CHECK(parameter.name.find(".adapter.") != std::string::npos);
  }
}
