#include "models/data/shapes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include "models/data/hash_noise.h"
#include "tests/support/catch.h"

using namespace rematch;

namespace {

ModelSpec small_spec(std::int64_t batch) {
  return std::get<ModelSpec>(make_spec(
      "wan_small",
      {{"batch", batch}, {"frames", 3}, {"height", 4}, {"width", 6}, {"text_tokens", 5}}));
}

}  // namespace

TEST_CASE("a batch has the shapes that the model needs, including on meta") {
  const ModelSpec spec = small_spec(2);
  for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kMeta)}) {
    const Batch batch = make_shape_data(spec, 1, device)->batch(0);
    REQUIRE(batch.tensors.size() == 4);
    CHECK(batch.tensors[0].sizes() == at::IntArrayRef({2, spec.at("channels"), 3, 8, 12}));
    CHECK(batch.tensors[1].sizes() == batch.tensors[0].sizes());
    CHECK(batch.tensors[2].sizes() == at::IntArrayRef({2}));
    CHECK(batch.tensors[3].sizes() == at::IntArrayRef({2, 5, spec.at("text_dim")}));
    CHECK(batch.tensors[3].device() == device);
  }
}

TEST_CASE("the data of a step depends only on the seed and the step") {
  const ModelSpec spec = small_spec(2);
  const auto data = make_shape_data(spec, 1, at::kCPU);
  const auto again = make_shape_data(spec, 1, at::kCPU);
  data->batch(0);
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(data->batch(5).tensors[i].equal(again->batch(5).tensors[i]));
    CHECK_FALSE(data->batch(5).tensors[i].equal(data->batch(6).tensors[i]));
    if (i != 3) {  // with this small vocabulary, two batches may contain the same words
      CHECK_FALSE(
          data->batch(5).tensors[i].equal(make_shape_data(spec, 2, at::kCPU)->batch(5).tensors[i]));
    }
  }
}

TEST_CASE("each video shows one coloured shape that moves by one pixel per frame") {
  const auto data = make_shape_data(small_spec(1), 1, at::kCPU);
  for (std::int64_t step = 0; step < 20; ++step) {
    CAPTURE(step);
    const at::Tensor channel = data->batch(step).tensors[0][0][0];  // a tensor [frames, height,
                                                                    // width]
    const float low = channel.min().item<float>();
    const float high = channel.max().item<float>();
    REQUIRE(low < high);
    const at::Tensor is_high = channel == high;
    CHECK((is_high.sum() + (channel == low).sum()).item<std::int64_t>() == channel.numel());
    int num_moves = 0;
    for (const std::int64_t down : {-1, 0, 1}) {
      for (const std::int64_t right : {-1, 0, 1}) {
        if (down == 0 && right == 0) continue;
        const bool first = is_high[0].roll({down, right}, {0, 1}).equal(is_high[1]);
        const bool second = is_high[1].roll({down, right}, {0, 1}).equal(is_high[2]);
        if (first && second) ++num_moves;
      }
    }
    CHECK(num_moves >= 1);
  }
}

TEST_CASE("the text describes the video") {
  const auto data = make_shape_data(small_spec(16), 1, at::kCPU);
  const Batch batch = data->batch(0);
  for (std::int64_t left = 0; left < 16; ++left) {
    for (std::int64_t right = 0; right < left; ++right) {
      const bool same_colour = batch.tensors[3][left][1].equal(batch.tensors[3][right][1]);
      const auto highest = [&](std::int64_t row) {
        // a small shape may cover the centre of only one pixel, or of none
        const at::Tensor video = batch.tensors[0][row];
        return video.amax({1, 2, 3}) + video.amin({1, 2, 3});
      };
      CHECK(same_colour == highest(left).equal(highest(right)));
      CHECK(batch.tensors[3][left][3].equal(batch.tensors[3][right][4]));  // padding
    }
  }
}

TEST_CASE("noise is close to a standard normal, and flow time is inside (0, 1)") {
  const Batch batch = make_shape_data(small_spec(64), 3, at::kCPU)->batch(0);
  const at::Tensor noise = batch.tensors[1];  // the noise has 73728 random numbers
  CHECK(noise.mean().item<double>() == Approx(0.0).margin(0.02));
  CHECK(noise.pow(2).mean().item<double>() == Approx(1.0).margin(0.03));
  // A normal distribution has fourth moment 3. A sum of eight uniform numbers has 3 - 6 / 5 / 8 =
  // 2.85.
  CHECK(noise.pow(4).mean().item<double>() == Approx(2.85).margin(0.15));
  CHECK(batch.tensors[2].min().item<float>() > 0.0F);
  CHECK(batch.tensors[2].max().item<float>() < 1.0F);
  CHECK(hash_to_open_unit(0) == 0x1p-24F);
  CHECK(hash_to_open_unit(~0ULL) == 1.0F - 0x1p-24F);
}

// The velocity is noise - latents. In channel 0 it is 1 and 3, with mean 2 and squared error 1. In
// channel 1 it is always 5, with error 0. The loss is (1 + 0) / 2.
TEST_CASE("the best constant prediction of the velocity is the mean of each channel") {
  std::vector<Batch> batches;
  for (const float velocity : {1.0F, 3.0F}) {
    const at::Tensor noise = at::full({1, 2, 1, 2, 2}, 5.0F);
    at::Tensor latents = at::full({1, 2, 1, 2, 2}, 0.0F);
    latents.select(1, 0).fill_(5.0F - velocity);
    batches.push_back({{latents, noise}});
  }
  CHECK(best_constant_predictor_loss(batches) == Approx(0.5));
}
