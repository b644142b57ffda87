
#include <ATen/TensorOperators.h>

#include <cmath>

#include "models/layers/rotary.h"
#include "tests/models/model_checks.h"
#include "tests/models/op_stream.h"
#include "tests/models/plain_language.h"
#include "tests/support/catch.h"

using namespace rematch;

namespace {

const std::map<std::string, std::int64_t> kReducedDeepseek = {
    {"layers", 2},      {"dim", 64},  {"heads", 3},   {"latent_dim", 20}, {"nope_dim", 12},
    {"rope_dim", 6},    {"ffn", 48},  {"experts", 5}, {"top_k", 2},       {"expert_ffn", 24},
    {"shared_ffn", 40}, {"batch", 2}, {"tokens", 33}, {"value_dim", 10}};

}  // namespace

TEST_CASE("DeepSeek's loss and gradients equal the results of plain code in double") {
  check_against_plain_language(spec_of("deepseek_small", kReducedDeepseek));
  std::map<std::string, std::int64_t> as_wide = kReducedDeepseek;
  as_wide["value_dim"] = 18;  // equal to the width of query heads, so values need no padding
  check_against_plain_language(spec_of("deepseek_small", as_wide));
}

TEST_CASE("latent attention runs one attention op per block") {
  const ModelSpec spec = spec_of("deepseek_small", kReducedDeepseek);
  const auto model = make_model(spec, at::kCPU);
  OpStream stream;
  {
    const OpModeGuard guard(&stream);
    model->loss(make_data(spec, "", 1, at::kCPU)->batch(0));
  }
  int count = 0;
  for (const std::string& name : stream.names()) {
    if (name == "rematch::attention") ++count;
  }
  CHECK(count == 2);
}

// The table has 64 dimensions, and the original context has 4096 tokens. Within 4096 tokens, pair i
// makes 4096 * 10000^(-i / 32) / (2 pi) turns: 32 turns at i = 10.5, and one turn at i = 22.5. So
// pairs up to 10 keep their frequency, and the frequency of pairs from 23 on is divided by 40.
TEST_CASE("the rotary table is stretched by the formula of YaRN") {
  const RotaryTable table = make_yarn_table(3, 64, at::kCPU);
  const auto angle = [&](std::int64_t pair) {
    return std::atan2(table.sine[2][0][pair].item<double>(),
                      table.cosine[2][0][pair].item<double>());
  };
  const auto plain = [](std::int64_t pair) {
    return 2 * std::pow(10'000.0, -static_cast<double>(pair) / 32);
  };
  for (const std::int64_t pair : {0, 5, 10}) CHECK(angle(pair) == Approx(plain(pair)));
  for (const std::int64_t pair : {23, 31}) CHECK(angle(pair) == Approx(plain(pair) / 40));
  CHECK(angle(11) == Approx(plain(11) * (1 - 1.0 / 13 + 1.0 / 13 / 40)));
}
