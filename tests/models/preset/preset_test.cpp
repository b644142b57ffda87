#include "models/preset/preset.h"

#include "policies/base/rejected.h"
#include "tests/support/catch.h"

using namespace rematch;

namespace {

constexpr ModelFamily kWan = ModelFamily::kDit;

ModelSpec accept(std::string_view preset, const std::map<std::string, std::int64_t>& overrides) {
  const auto made = make_spec(preset, overrides);
  if (const auto* rejected = std::get_if<Rejected>(&made)) FAIL(rejected->message);
  return std::get<ModelSpec>(made);
}

std::string reject(std::string_view preset, const std::map<std::string, std::int64_t>& overrides,
                   std::string_view dtype = "float32") {
  const auto made = make_spec(preset, overrides, dtype);
  REQUIRE(std::holds_alternative<Rejected>(made));
  return std::get<Rejected>(made).message;
}

}  // namespace

TEST_CASE("every preset makes a valid spec with each dimension of its family") {
  REQUIRE(presets().size() == 15);
  for (const PresetEntry& entry : presets()) {
    CAPTURE(entry.name);
    const ModelSpec spec = accept(entry.name, {});
    const auto& dimensions = dimension_entries(spec.family);
    std::size_t num_options = 0;
    for (const DimensionEntry& dimension : dimensions) {
      num_options += dimension.is_option ? 1 : 0;
      if (dimension.is_option) continue;
      const std::int64_t value = spec.at(std::string(dimension.name));
      CHECK(value >= dimension.minimum);
      CHECK(value <= dimension.maximum);
    }
    CHECK(spec.dimensions.size() + num_options == dimensions.size());
    CHECK(num_options >= 1);
  }
}

TEST_CASE("the error for an unknown model suggests the nearest model") {
  CHECK(reject("wan_smal", {}) == "unknown model 'wan_smal'; did you mean 'wan_small'?");
  CHECK(reject("", {}).starts_with("unknown model ''"));
}

TEST_CASE("the error for an unknown dimension suggests the nearest dimension") {
  CHECK(reject("wan_small", {{"kv_heads", 2}})
            .starts_with("model 'wan_small' has no dimension 'kv_heads'"));
  CHECK(reject("llama_small", {{"layer", 2}}) ==
        "model 'llama_small' has no dimension 'layer'; did you mean 'layers'?");
}

TEST_CASE("the error for a value out of range gives the range") {
  CHECK(reject("llama_small", {{"layers", 0}}) == "layers 0 is out of range; allowed: 1 to 10000");
  CHECK(reject("llama_small", {{"layers", -3}}).starts_with("layers -3 is out of range"));
  CHECK(reject("llama_small", {{"vocab", 255}}).find("256 to") != std::string::npos);
}

TEST_CASE("inconsistent dimensions are rejected") {
  CHECK(reject("llama_small", {{"heads", 5}}) == "heads 5 does not divide dim 128");
  CHECK(reject("llama_small", {{"kv_heads", 3}}) == "kv_heads 3 does not divide heads 4");
  CHECK(reject("llama_small", {{"dim", 12}}).starts_with("dim / heads = 3 is odd"));
  CHECK(reject("wan_small", {{"freq_dim", 63}}).starts_with("freq_dim 63 is odd"));
}

TEST_CASE("an option that is off does not appear in the spec") {
  const ModelSpec plain = accept("llama_small", {});
  CHECK(accept("llama_small", {{"dropout_percent", 0}, {"adapter_rank", 0}}).dimensions ==
        plain.dimensions);
  CHECK(plain.option("dropout_percent") == 0);
  CHECK(plain.option("no_such_option") == 0);
  CHECK(accept("llama_small", {{"dropout_percent", 10}}).option("dropout_percent") == 10);
  CHECK(reject("wan_small", {{"dropout_percent", 91}}) ==
        "dropout_percent 91 is out of range; allowed: 0 to 90");
  CHECK(reject("wan_small", {{"adapter_rank", 2}})
            .starts_with("model 'wan_small' has no dimension 'adapter_rank'"));
}

TEST_CASE("too many frozen layers, and frozen layers together with adapters, are rejected") {
  CHECK(reject("llama_small", {{"frozen_layers", 9}}) == "frozen_layers 9 is more than layers 8");
  CHECK(reject("llama_small", {{"frozen_layers", 1}, {"adapter_rank", 4}})
            .find("cannot be combined") != std::string::npos);
  accept("llama_small", {{"frozen_layers", 8}});
}

TEST_CASE("packed weights are an option of every family, and cannot have adapters") {
  for (const PresetEntry& preset : presets()) {
    CHECK_FALSE(accept(std::string(preset.name), {{"packed_weights", 0}})
                    .dimensions.contains("packed_weights"));
    CHECK(accept(std::string(preset.name), {{"packed_weights", 1}}).option("packed_weights") == 1);
  }
  CHECK(
      reject("llama_small", {{"packed_weights", 1}, {"adapter_rank", 4}}) ==
      "packed_weights and adapter_rank 4 cannot be combined: every adapter belongs to a weight of "
      "its own; give one of the two");
}

TEST_CASE("only a fused loss can keep its logits or compute them again") {
  for (const char* preset : {"llama_small", "moe_small", "deepseek_small"}) {
    CHECK(accept(preset, {{"fused_ops", 1}, {"kept_logits", 1}}).option("kept_logits") == 1);
    CHECK_FALSE(accept(preset, {{"kept_logits", 0}}).dimensions.contains("kept_logits"));
    CHECK(reject(preset, {{"kept_logits", 1}}) ==
          "kept_logits needs fused ops: with eager ops backward always has the logits; add --ops "
          "fused");
  }
}

TEST_CASE("inconsistent settings of experts and latent attention are rejected") {
  for (const char* preset : {"moe_small", "deepseek_small"}) {
    CHECK(reject(preset, {{"experts", 4}, {"top_k", 5}}) == "top_k 5 is more than experts 4");
    CHECK(reject(preset, {{"expert_ffn", 20}}).starts_with("expert_ffn 20 is not a multiple of 8"));
  }
  CHECK(reject("deepseek_small", {{"dim", 132}}).starts_with("dim 132 is not a multiple of 8"));
  CHECK(reject("deepseek_small", {{"value_dim", 49}}).find("nope_dim + rope_dim = 48") !=
        std::string::npos);
  CHECK(reject("deepseek_small", {{"rope_dim", 7}}).starts_with("rope_dim 7 is odd"));
  CHECK(reject("deepseek_small", {{"dense_layers", 7}}) == "dense_layers 7 is more than layers 6");
}

TEST_CASE("family names convert to families and back") {
  for (const ModelFamily family : model_families()) {
    CHECK(from_string<ModelFamily>(to_string(family)) == family);
  }
  CHECK(to_string(ModelFamily::kDit) == "dit");
  CHECK_FALSE(from_string<ModelFamily>("gpt").has_value());
  CHECK(trains_on_text(ModelFamily::kDeepseek));
  CHECK_FALSE(trains_on_text(ModelFamily::kLtx));
}

TEST_CASE("a dtype other than float32 and bfloat16 is rejected") {
  CHECK(reject("llama_small", {}, "float16") ==
        "unknown dtype 'float16'; allowed: float32, bfloat16");
  const auto spec = make_spec("llama_small", {}, "bfloat16");
  CHECK(std::get<ModelSpec>(spec).dtype == "bfloat16");
}

TEST_CASE("a video's grid is computed from its tokens, or its tokens from its grid") {
  struct Grid {
    std::int64_t tokens, frames, height, width;
  };
  for (const Grid& grid : {Grid{64, 4, 4, 4}, Grid{128, 4, 4, 8}, Grid{1, 1, 1, 1},
                           Grid{7, 1, 1, 7}, Grid{27, 3, 3, 3}, Grid{31'200, 30, 26, 40}}) {
    CAPTURE(grid.tokens);
    const ModelSpec spec = accept("wan_1_3b", {{"tokens", grid.tokens}});
    CHECK(spec.at("frames") == grid.frames);
    CHECK(spec.at("height") == grid.height);
    CHECK(spec.at("width") == grid.width);
  }
  CHECK(accept("wan_small", {{"frames", 3}, {"height", 2}, {"width", 5}}).at("tokens") == 30);
}

TEST_CASE("tokens that contradict the grid are rejected") {
  CHECK(reject("wan_small", {{"tokens", 100}, {"frames", 3}}) ==
        "tokens 100 is not frames x height x width = 192; give only tokens, or only frames, height "
        "and width");
  CHECK(accept("wan_small", {{"tokens", 192}, {"frames", 3}}).at("tokens") == 192);
}

// The grid has 1 + 76 / 4 = 20 frames, height 480 / 16 = 30 and width 832 / 16 = 52, so 31200
// tokens. At 720p the grid is 20 x 45 x 80.
TEST_CASE("a video's pixels give its grid of latent patches") {
  using Dimensions = std::map<std::string, std::int64_t>;
  const auto grid = std::get<Dimensions>(video_dimensions("77x480x832", kWan));
  CHECK(grid == Dimensions{{"frames", 20}, {"height", 30}, {"width", 52}});
  CHECK(accept("wan_1_3b", grid).at("tokens") == 31'200);
  CHECK(accept("wan_1_3b", std::get<Dimensions>(video_dimensions("77x720x1280", kWan)))
            .at("tokens") == 72'000);
}

// The grid has 1 + 80 / 8 = 11 frames, height 512 / 32 = 16 and width 768 / 32 = 24, so 4224
// tokens.
TEST_CASE("pixels are converted to latent patches by the rules of LTX's autoencoder") {
  using Dimensions = std::map<std::string, std::int64_t>;
  const auto grid = std::get<Dimensions>(video_dimensions("81x512x768", ModelFamily::kLtx));
  CHECK(grid == Dimensions{{"frames", 11}, {"height", 16}, {"width", 24}});
  CHECK(accept("ltx", {}).at("tokens") == 4224);
  const auto refused = video_dimensions("77x512x768", ModelFamily::kLtx);
  CHECK(std::get<Rejected>(refused).message.find("multiple of 8 plus 1") != std::string::npos);
  const auto text = video_dimensions("81x512x768", ModelFamily::kMoe);
  CHECK(std::get<Rejected>(text).message.find("trains on text") != std::string::npos);
}

TEST_CASE("an impossible video is rejected") {
  for (const char* text :
       {"", "77", "77x480", "77x480x832x1", "77x480x", "x480x832", "77x-480x832", "77*480*832",
        "77x480x832 ", "0x480x832", "77x480x99999999999999999999"}) {
    CAPTURE(text);
    const auto parsed = video_dimensions(text, kWan);
    REQUIRE(std::holds_alternative<Rejected>(parsed));
    CHECK(std::get<Rejected>(parsed).message.find("write it like 77x480x832") != std::string::npos);
  }
  CHECK(std::get<Rejected>(video_dimensions("78x480x832", kWan))
            .message.find("multiple of 4 plus 1") != std::string::npos);
  CHECK(std::get<Rejected>(video_dimensions("77x488x832", kWan)).message.find("multiples of 16") !=
        std::string::npos);
}
