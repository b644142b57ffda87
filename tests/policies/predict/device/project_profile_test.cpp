#include "policies/predict/device/project_profile.h"
#include "policies/base/rejected.h"

#include <numeric>

#include "tests/support/catch.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

using Duration = Profile::Duration;

constexpr std::uint32_t kSeed = 7;

Profile projected(const Profile& measured, const Trace& few, const Trace& many, int layers) {
  auto result = project_profile(measured, few, many, layers);
  if (const auto* rejected = std::get_if<Rejected>(&result)) FAIL(rejected->message);
  return std::get<Profile>(std::move(result));
}

// Returns the time of one layer's forward.
Duration time_of_layer(const Profile& profile, const Trace& trace, std::size_t layer) {
  const auto scope = trace.blocks[layer].scope;
  return std::accumulate(profile.forward.begin() + trace.scopes[scope].first_op.index,
                         profile.forward.begin() + trace.scopes[scope].end_op.index, Duration{});
}

TEST_CASE("projecting a profile to its own number of layers changes nothing") {
  const Trace trace = testing::toy_llama({.layers = 3});
  Profile measured = testing::made_up_profile(trace, kSeed);
  const Profile same = projected(measured, trace, trace, 3);
  measured.measured_layers = 3;
  CHECK(same == measured);
}

TEST_CASE(
    "each added layer takes the time of a middle layer; the first and last layers keep their "
    "times") {
  const Trace few = testing::toy_llama({.layers = 3});
  const Trace many = testing::toy_llama({.layers = 9});
  const Profile measured = testing::made_up_profile(few, kSeed);
  const Profile profile = projected(measured, few, many, 3);
  CHECK_FALSE(profile_problem(profile, many).has_value());
  CHECK(profile.measured_layers == 3);
  CHECK(time_of_layer(profile, many, 0) == time_of_layer(measured, few, 0));
  for (std::size_t layer = 1; layer < 8; ++layer) {
    CHECK(time_of_layer(profile, many, layer) == time_of_layer(measured, few, 1));
  }
  CHECK(time_of_layer(profile, many, 8) == time_of_layer(measured, few, 2));
  const auto ops_of = [](const Profile& of) { return of.forward_time() - of.forward_between_ops; };
  CHECK(ops_of(profile) - ops_of(measured) == 6 * time_of_layer(measured, few, 1));
}

TEST_CASE("backward ops and temporaries are projected with their layers") {
  const Trace few = testing::toy_llama({.layers = 3});
  const auto layers = [&](int num_layers) {
    const Trace many = testing::toy_llama({.layers = num_layers});
    return projected(testing::made_up_profile(few, kSeed), few, many, 3);
  };
  const auto backward = [](const Profile& profile) {
    return std::accumulate(profile.backward.begin(), profile.backward.end(), Duration{});
  };
  const Duration slope = backward(layers(5)) - backward(layers(4));
  CHECK(slope > Duration{});
  CHECK(backward(layers(12)) - backward(layers(4)) == 8 * slope);
  const auto temporary = [](const Profile& profile) {
    Bytes sum;
    for (const Bytes bytes : *profile.backward_temporary) sum += bytes;
    return sum.count;
  };
  const std::int64_t more = temporary(layers(5)) - temporary(layers(4));
  CHECK(more > 0);
  CHECK(temporary(layers(12)) - temporary(layers(4)) == 8 * more);
}

TEST_CASE("kernel counts are projected with their layers") {
  const Trace few = testing::toy_llama({.layers = 3});
  const Trace many = testing::toy_llama({.layers = 12});
  Profile measured = testing::made_up_profile(few, kSeed);
  CHECK_FALSE(projected(measured, few, many, 3).forward_kernels.has_value());
  measured.forward_kernels.emplace(few.ops.size(), 2);
  CHECK(projected(measured, few, many, 3).forward_kernels ==
        std::vector<std::int32_t>(many.ops.size(), 2));
}

TEST_CASE(
    "the time between ops scales with the number of ops, and the optimizer's time with the number "
    "of parameters") {
  Trace few = testing::toy_llama({.layers = 2});
  Trace many = testing::toy_llama({.layers = 6});
  few.parameters = {{100, "float32", 2}};
  many.parameters = {{100, "float32", 2}, {10, "float32", 40}};
  Profile measured = testing::made_up_profile(few, kSeed);
  measured.forward_between_ops = Duration(1'000'000);
  measured.optimizer = Duration(5000);
  const Profile profile = projected(measured, few, many, 2);
  CHECK(profile.optimizer == Duration(15'000));
  const double growth = static_cast<double>(many.ops.size()) / static_cast<double>(few.ops.size());
  CHECK(static_cast<double>(profile.forward_between_ops.count()) == Approx(growth * 1e6).margin(1));
}

// The model has three kinds of layers in turn, so two measured layers cover only two kinds.
TEST_CASE("the error for a layer without a measured counterpart names the layer") {
  const Trace few = testing::toy_three_kinds({.layers = 2});
  const Trace many = testing::toy_three_kinds({.layers = 6});
  const Profile measured = testing::made_up_profile(few, kSeed);
  const auto result = project_profile(measured, few, many, 2);
  REQUIRE(std::holds_alternative<Rejected>(result));
  CHECK(
      std::get<Rejected>(result).message ==
      "blocks.2 differs from every measured layer; measure more than 2 layers, so that every kind "
      "of layer is measured");
}

TEST_CASE("layers with equally many ops match only if the ops and shapes are equal") {
  const Trace few = testing::toy_llama({.layers = 3});
  const Profile measured = testing::made_up_profile(few, kSeed);
  Trace many = testing::toy_llama({.layers = 5});
  const auto scope = many.blocks[2].scope;
  const auto op = many.scopes[scope].first_op;
  CHECK(std::holds_alternative<Profile>(project_profile(measured, few, many, 3)));
  Trace other_op = many;
  other_op.ops[op].name = "aten::cosh";
  CHECK(std::holds_alternative<Rejected>(project_profile(measured, few, other_op, 3)));
  Trace other_shape = many;
  other_shape.values[many.ops[op].outputs.at(0)].shape = {3, 5};
  CHECK(std::holds_alternative<Rejected>(project_profile(measured, few, other_shape, 3)));
}

// The first layer does not add to an existing gradient. Its backward therefore differs from the
// backward of other layers of the same kind.
TEST_CASE("layers that differ only in backward are also rejected") {
  const Trace many = testing::toy_three_kinds({.layers = 6});
  const auto from = [&](int layers) {
    const Trace few = testing::toy_three_kinds({.layers = layers});
    return project_profile(testing::made_up_profile(few, kSeed), few, many, layers);
  };
  const auto three = from(3);
  REQUIRE(std::holds_alternative<Rejected>(three));
  CHECK_THAT(std::get<Rejected>(three).message,
             Catch::StartsWith("backward of blocks.3 differs from every measured layer"));
  const auto four = from(4);
  REQUIRE(std::holds_alternative<Profile>(four));
  CHECK_FALSE(profile_problem(std::get<Profile>(four), many).has_value());
}

}  // namespace
}  // namespace rematch
