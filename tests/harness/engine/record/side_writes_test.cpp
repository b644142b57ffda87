// Tests ops that compute results and also write into some of their arguments. Checks the list of
// these ops, and that recompute does not change buffers.
#include "harness/engine/record/op_facts.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "harness/engine/interception.h"
#include "policies/predict/region/simulator.h"
#include "policies/predict/region/trace_index.h"
#include "tests/support/catch.h"
#include "tests/support/networks.h"
#include "tests/support/schedules.h"
#include "tests/support/seeds.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

constexpr std::int64_t kRows = 6;
constexpr std::int64_t kChannels = 8;

at::Tensor floats(at::IntArrayRef sizes) { return at::randn(sizes); }
at::Tensor ones(at::IntArrayRef sizes) { return at::ones(sizes); }
at::Tensor longs(at::IntArrayRef sizes) { return at::ones(sizes, at::TensorOptions(at::kLong)); }

struct Call {
  std::string op;
  std::vector<c10::IValue> arguments;
};

// Returns calls of CPU ops that may write to their arguments: ops on statistics, noise, states or
// observers.
std::vector<Call> suspects() {
  const c10::IValue none;
  const at::Tensor x = floats({4, 3, 5});
  const at::Tensor mean = floats({3});
  const at::Tensor var = ones({3});
  const at::Tensor scale = ones({1});
  const at::Tensor zero_point = at::zeros({1}, at::TensorOptions(at::kInt));
  const at::Tensor on = longs({1});
  const at::Tensor infinite = at::full({}, std::numeric_limits<float>::infinity());
  const at::Tensor table = floats({5, 4});
  const auto stats = [&](c10::IValue training) {
    return std::vector<c10::IValue>{x,           ones({3}), ones({3}), mean.clone(),
                                    var.clone(), training,  0.1,       1e-5};
  };
  const auto update = [&](bool given) {
    return std::vector<c10::IValue>{x,
                                    ones({3}),
                                    ones({3}),
                                    given ? c10::IValue(mean.clone()) : none,
                                    given ? c10::IValue(var.clone()) : none,
                                    0.1,
                                    1e-5};
  };
  const auto with = [](std::vector<c10::IValue> arguments, std::vector<c10::IValue> more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  return {
      {"aten::native_batch_norm", stats(true)},
      {"aten::native_batch_norm", stats(false)},
      {"aten::native_batch_norm.out",
       with(stats(true), {at::empty({4, 3, 5}), at::empty({3}), at::empty({3})})},
      {"aten::_native_batch_norm_legit", stats(true)},
      {"aten::_native_batch_norm_legit", stats(false)},
      {"aten::_native_batch_norm_legit.no_stats", {x, ones({3}), ones({3}), true, 0.1, 1e-5}},
      {"aten::_native_batch_norm_legit_no_training", update(true)},
      {"aten::_native_batch_norm_legit_functional", stats(true)},
      {"aten::_batch_norm_with_update", update(true)},
      {"aten::_batch_norm_no_update", update(true)},
      {"aten::batch_norm_update_stats", {x, mean.clone(), var.clone(), 0.1}},
      {"aten::batch_norm_update_stats.out",
       {x, mean.clone(), var.clone(), 0.1, at::empty({3}), at::empty({3})}},
      {"aten::native_batch_norm_backward",
       {x, x, ones({3}), mean.clone(), var.clone(), mean.clone(), var.clone(), true, 1e-5,
        c10::List<bool>({true, true, true})}},
      {"aten::native_batch_norm_backward",
       {x, x, ones({3}), mean.clone(), var.clone(), mean.clone(), var.clone(), false, 1e-5,
        c10::List<bool>({true, true, true})}},
      {"aten::native_group_norm", {x, ones({3}), ones({3}), 4, 3, 5, 1, 1e-5}},
      {"aten::native_layer_norm", {x, c10::List<std::int64_t>({5}), ones({5}), ones({5}), 1e-5}},
      {"aten::rrelu_with_noise", {x, ones({4, 3, 5}), 0.1, 0.3, true, none}},
      {"aten::rrelu_with_noise_", {x.clone(), ones({4, 3, 5}), 0.1, 0.3, true, none}},
      {"aten::rrelu_with_noise_functional", {x, ones({4, 3, 5}), 0.1, 0.3, true, none}},
      {"aten::rrelu_with_noise_backward", {x, x, ones({4, 3, 5}), 0.1, 0.3, true, false}},
      {"aten::_fused_moving_avg_obs_fq_helper",
       {x, on, on, infinite.clone(), infinite.neg(), scale.clone(), zero_point.clone(), 0.01, 0,
        255, 0, false, false}},
      {"aten::_fused_moving_avg_obs_fq_helper_functional",
       {x, on, on, infinite.clone(), infinite.neg(), scale.clone(), zero_point.clone(), 0.01, 0,
        255, 0, false, false}},
      {"aten::_fake_quantize_learnable_per_tensor_affine",
       {x, scale.clone(), at::zeros({1}), 0, 255, 1.0}},
      {"aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
       {x, scale.clone(), zero_point.clone(), on, 0, 255}},
      {"aten::fake_quantize_per_channel_affine_cachemask",
       {x, ones({3}), at::zeros({3}, at::TensorOptions(at::kInt)), 1, 0, 255}},
      {"aten::embedding_renorm_", {table.clone(), at::arange(3), 0.5, 2.0}},
      {"aten::embedding", {table, at::arange(3), -1, false, false}},
      {"aten::_embedding_bag",
       {table, at::arange(4), at::arange(2), false, 2, false, none, false, -1}},
      {"aten::bernoulli", {at::rand({4}), none}},
      {"aten::multinomial", {at::rand({4}), 2, false, none}},
      {"aten::native_dropout", {x, 0.5, true}},
      {"aten::log_sigmoid_forward", {x}},
      {"aten::_amp_update_scale_",
       {scale.clone(), at::zeros({1}, at::TensorOptions(at::kInt)), scale.clone(), 2.0, 0.5, 1}},
  };
}

using Positions = std::set<std::size_t>;

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

// Returns the positions of the arguments that the call changed.
Positions written_by(const OpFacts& facts, torch::jit::Stack arguments) {
  std::map<std::size_t, at::Tensor> before;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].isTensor()) before[i] = arguments[i].toTensor().clone();
  }
  torch::jit::Stack stack = arguments;
  facts.op.callBoxed(&stack);
  Positions positions;
  for (const auto& [position, content] : before) {
    if (!same_bytes(arguments[position].toTensor(), content)) positions.insert(position);
  }
  return positions;
}

Positions listed(const OpFacts& facts, const Call& call) {
  if (!has_side_writes(facts, call.arguments)) return {};
  return {facts.side_written.begin(), facts.side_written.end()};
}

Positions marked(const OpFacts& facts) { return {facts.written.begin(), facts.written.end()}; }

TEST_CASE("ops write only to arguments that their schemas or the list of side writes name") {
  const at::NoGradGuard no_grad;
  for (const Call& call : suspects()) {
    CAPTURE(call.op);
    const OpFacts* facts = find_facts(call.op);
    REQUIRE(facts != nullptr);
    REQUIRE(facts->arguments.size() == call.arguments.size());
    const Positions written = written_by(*facts, call.arguments);
    const Positions said = listed(*facts, call);
    CAPTURE(written, said);
    for (const std::size_t position : written) {
      CHECK(said.count(position) + marked(*facts).count(position) > 0);
    }
    for (const std::size_t position : said) CHECK(written.count(position) == 1);
  }
}

// In recompute, the op writes to scratch memory instead of the argument. So its results must not
// depend on what the argument contained.
TEST_CASE("results do not depend on values that a side write overwrites") {
  const at::NoGradGuard no_grad;
  for (const Call& call : suspects()) {
    CAPTURE(call.op);
    const OpFacts& facts = *find_facts(call.op);
    if (listed(facts, call).empty() || facts.side_feeds_results) continue;
    const auto results_with = [&](double content) {
      torch::jit::Stack stack = call.arguments;
      for (const std::uint16_t position : facts.side_written) {
        stack[position] = at::full_like(stack[position].toTensor(), content);
      }
      seed_generator();
      facts.op.callBoxed(&stack);
      return stack;
    };
    const auto first = results_with(0.0);
    const auto second = results_with(7.0);
    REQUIRE(first.size() == second.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
      CHECK(same_bytes(first[i].toTensor().clone(), second[i].toTensor().clone()));
    }
  }
}

TEST_CASE(
    "every entry of the table of side writes names an existing op and arguments that the op has") {
  std::set<std::string> found;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const SideWrites* writes = side_writes_of(name.name);
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (writes == nullptr || !op.has_value()) continue;
    const OpFacts& facts = facts_of(*op);
    if (facts.side_written.size() != writes->arguments.size())
      continue;  // skipped, because this overload lacks the listed arguments
    CAPTURE(facts.name);
    found.insert(name.name);
    CHECK((facts.side_if >= 0) == !writes->only_if.empty());
  }
  for (const SideWrites& writes : all_side_writes()) {
    CAPTURE(writes.op);
    CHECK(found.count(std::string(writes.op)) == 1);
  }
}

struct Parts {
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> buffers;
};

using LayerWithBuffers = std::function<at::Tensor(const at::Tensor& x, const Parts& parts)>;
using MakeBuffers = std::function<std::vector<at::Tensor>()>;

// Makes a network of two layers. Each layer has its own square weight, scale, shift and buffers.
NamedNetwork layers_of(const std::string& name, const MakeBuffers& make_buffers,
                       const LayerWithBuffers& layer, at::ScalarType type = at::kFloat) {
  return {name, [=] {
            Network network;
            const auto leaf = [&](at::IntArrayRef sizes) {
              return floats(sizes).mul(0.5).to(type).requires_grad_();
            };
            network.input = leaf({kRows, kChannels});
            for (int i = 0; i < 2; ++i) {
              Parts parts{{leaf({kChannels, kChannels}), leaf({kChannels}), leaf({kChannels})},
                          make_buffers()};
              network.parameters.insert(network.parameters.end(), parts.weights.begin(),
                                        parts.weights.end());
              network.buffers.insert(network.buffers.end(), parts.buffers.begin(),
                                     parts.buffers.end());
              network.layers.push_back([=](const at::Tensor& x) { return layer(x, parts); });
            }
            return network;
          }};
}

std::vector<at::Tensor> running_statistics() { return {floats({kChannels}), ones({kChannels})}; }
std::vector<at::Tensor> nothing() { return {}; }

at::Tensor norm(const at::Tensor& x, const Parts& parts, bool training) {
  return at::batch_norm(x, parts.weights[1], parts.weights[2], parts.buffers[0], parts.buffers[1],
                        training, 0.1, 1e-5, false);
}

at::Tensor as_image(const at::Tensor& x) { return x.view({kRows, kChannels / 2, 2, 1}); }

std::vector<NamedNetwork> batch_norms() {
  return {
      layers_of("batch norm in training", &running_statistics,
                [](const at::Tensor& x, const Parts& p) {
                  return norm(at::mm(x, p.weights[0]), p, true).sin();
                }),
      layers_of("batch norm as the last op", &running_statistics,
                [](const at::Tensor& x, const Parts& p) {
                  return norm(at::mm(x, p.weights[0]).sin(), p, true);
                }),
      layers_of("batch norm in evaluation", &running_statistics,
                [](const at::Tensor& x, const Parts& p) {
                  return norm(at::mm(x, p.weights[0]), p, false).sin();
                }),
      layers_of("a batch norm that runs twice", &running_statistics,
                [](const at::Tensor& x, const Parts& p) {
                  return norm(norm(at::mm(x, p.weights[0]), p, true).sin(), p, true).cos();
                }),
      layers_of("batch norm in evaluation, then in training, then in evaluation",
                &running_statistics,
                [](const at::Tensor& x, const Parts& p) {
                  const at::Tensor y = norm(at::mm(x, p.weights[0]), p, false).sin();
                  return norm(norm(y, p, true).cos(), p, false).sin();
                }),
      layers_of("running statistics read after the write", &running_statistics,
                [](const at::Tensor& x, const Parts& p) {
                  const at::Tensor y = norm(at::mm(x, p.weights[0]), p, true);
                  return y.sin() * p.buffers[1].rsqrt() + at::sin(y + p.buffers[0]);
                }),
      layers_of("batch norm without statistics", &nothing,
                [](const at::Tensor& x, const Parts& p) {
                  return at::batch_norm(at::mm(x, p.weights[0]), p.weights[1], p.weights[2], {}, {},
                                        true, 0.1, 1e-5, false)
                      .sin();
                }),
      layers_of(
          "bfloat16 through float32 statistics", &running_statistics,
          [](const at::Tensor& x, const Parts& p) {
            return at::batch_norm(at::mm(x, p.weights[0]), {}, {}, p.buffers[0], p.buffers[1], true,
                                  0.1, 1e-5, false)
                .sin();
          },
          at::kBFloat16),
      layers_of(
          "statistics that are views of one buffer",
          [] {
            return std::vector<at::Tensor>{floats({2, kChannels}).abs()};
          },
          [](const at::Tensor& x, const Parts& p) {
            return at::batch_norm(at::mm(x, p.weights[0]), p.weights[1], p.weights[2],
                                  p.buffers[0].select(0, 0), p.buffers[0].select(0, 1), true, 0.1,
                                  1e-5, false)
                .sin();
          }),
      layers_of(
          "cumulative average, momentum None",
          [] {
            return std::vector<at::Tensor>{floats({kChannels}), ones({kChannels}),
                                           at::zeros({}, at::TensorOptions(at::kLong))};
          },
          [](const at::Tensor& x, const Parts& p) {
            at::Tensor num_batches = p.buffers[2];
            num_batches.add_(1);
            const double momentum = 1.0 / num_batches.item<double>();
            return at::batch_norm(at::mm(x, p.weights[0]), p.weights[1], p.weights[2], p.buffers[0],
                                  p.buffers[1], true, momentum, 1e-5, false)
                .sin();
          }),
      layers_of(
          "batch norm of an image, channels last",
          [] {
            return std::vector<at::Tensor>{at::zeros({4}), ones({4})};
          },
          [](const at::Tensor& x, const Parts& p) {
            const at::Tensor image =
                as_image(at::mm(x, p.weights[0])).contiguous(at::MemoryFormat::ChannelsLast);
            return at::batch_norm(image, {}, {}, p.buffers[0], p.buffers[1], true, 0.1, 1e-5, false)
                .contiguous()
                .view({kRows, kChannels})
                .sin();
          }),
      layers_of(
          "instance norm with statistics",
          [] {
            return std::vector<at::Tensor>{at::zeros({4}), ones({4})};
          },
          [](const at::Tensor& x, const Parts& p) {
            const at::Tensor image = at::mm(x, p.weights[0]).view({kRows, 4, 2});
            return at::instance_norm(image, {}, {}, p.buffers[0], p.buffers[1], true, 0.1, 1e-5,
                                     false)
                .view({kRows, kChannels})
                .sin();
          }),
  };
}

std::vector<NamedNetwork> relatives() {
  return {
      layers_of("native_batch_norm_legit", &running_statistics,
                [](const at::Tensor& x, const Parts& p) {
                  at::Tensor mean = p.buffers[0];
                  at::Tensor var = p.buffers[1];
                  const auto results =
                      at::_native_batch_norm_legit(at::mm(x, p.weights[0]), p.weights[1],
                                                   p.weights[2], mean, var, true, 0.1, 1e-5);
                  return std::get<0>(results).sin();
                }),
      layers_of("batch_norm_with_update", &running_statistics,
                [](const at::Tensor& x, const Parts& p) {
                  at::Tensor mean = p.buffers[0];
                  at::Tensor var = p.buffers[1];
                  return std::get<0>(at::_batch_norm_with_update(at::mm(x, p.weights[0]),
                                                                 p.weights[1], p.weights[2], mean,
                                                                 var, 0.1, 1e-5))
                      .sin();
                }),
      layers_of("batch_norm_update_stats", &running_statistics,
                [](const at::Tensor& x, const Parts& p) {
                  const at::Tensor y = at::mm(x, p.weights[0]);
                  const auto [mean, var] =
                      at::batch_norm_update_stats(y.detach(), p.buffers[0], p.buffers[1], 0.1);
                  return at::sin((y - mean) * at::rsqrt(var + 1e-5));
                }),
      layers_of(
          "moving average observer with fake quantization",
          [] {
            return std::vector<at::Tensor>{at::full({}, std::numeric_limits<float>::infinity()),
                                           at::full({}, -std::numeric_limits<float>::infinity()),
                                           ones({1}), at::zeros({1}, at::TensorOptions(at::kInt))};
          },
          [](const at::Tensor& x, const Parts& p) {
            std::vector<at::Tensor> b = p.buffers;
            return at::fused_moving_avg_obs_fake_quant(at::mm(x, p.weights[0]), longs({1}),
                                                       longs({1}), b[0], b[1], b[2], b[3], 0.01, 0,
                                                       255, 0)
                .sin();
          }),
      layers_of(
          "a counter that is read before and after each increment",
          [] {
            return std::vector<at::Tensor>{at::zeros({}), ones({kChannels})};
          },
          [](const at::Tensor& x, const Parts& p) {
            at::Tensor count = p.buffers[0];
            const at::Tensor before = at::sin(at::mm(x, p.weights[0]) + count);
            count.add_(1);
            const at::Tensor between = at::cos(before + count);
            count.add_(1);
            return at::sin(between + count);
          }),
      layers_of("running mean subtracted, then updated with the batch's mean", &running_statistics,
                [](const at::Tensor& x, const Parts& p) {
                  at::Tensor mean = p.buffers[0];
                  const at::Tensor y = at::mm(x, p.weights[0]);
                  const at::Tensor centered = at::sin(y - mean);
                  mean.lerp_(y.detach().mean(0), 0.1);
                  return centered.sin();
                }),
      layers_of("embedding with max_norm", &nothing,
                [](const at::Tensor& x, const Parts& p) {
                  const at::Tensor rows = at::arange(kRows, at::TensorOptions(at::kLong));
                  at::Tensor table = p.weights[0];
                  {
                    const at::NoGradGuard no_grad;
                    at::embedding_renorm_(table, rows, 0.3, 2.0);
                  }
                  return at::sin(x * at::embedding(table, rows));
                }),
      layers_of("rrelu", &nothing,
                [](const at::Tensor& x, const Parts& p) {
                  return at::rrelu(at::mm(x, p.weights[0]), 0.1, 0.4, true).sin();
                }),
      layers_of("rrelu as the last op", &nothing,
                [](const at::Tensor& x, const Parts& p) {
                  return at::rrelu(at::mm(x, p.weights[0]).sin(), 0.1, 0.4, true);
                }),
      layers_of("rrelu in place", &nothing,
                [](const at::Tensor& x, const Parts& p) {
                  at::Tensor y = at::mm(x, p.weights[0]);
                  at::rrelu_(y, 0.1, 0.4, true);
                  return y.sin();
                }),
      layers_of("rrelu in evaluation", &nothing,
                [](const at::Tensor& x, const Parts& p) {
                  return at::rrelu(at::mm(x, p.weights[0]), 0.1, 0.4, false).sin();
                }),
      layers_of(
          "rrelu with noise from outside",
          [] {
            return std::vector<at::Tensor>{ones({kRows, kChannels})};
          },
          [](const at::Tensor& x, const Parts& p) {
            at::Tensor noise = p.buffers[0];
            return at::rrelu_with_noise(at::mm(x, p.weights[0]), noise, 0.1, 0.4, true).sin();
          }),
      layers_of("dropout before and after rrelu", &nothing,
                [](const at::Tensor& x, const Parts& p) {
                  const at::Tensor y = at::dropout(at::mm(x, p.weights[0]), 0.3, true);
                  return at::dropout(at::rrelu(y, 0.1, 0.4, true), 0.2, true).sin();
                }),
  };
}

std::vector<NamedNetwork> all_networks() {
  std::vector<NamedNetwork> networks = batch_norms();
  for (const NamedNetwork& network : relatives()) networks.push_back(network);
  return networks;
}

std::function<bool(int, int)> random_mask(std::uint32_t seed) {
  return [seed](int layer, int op) {
    std::mt19937 bits(seed * 7919U + static_cast<std::uint32_t>(layer * 131 + op));
    return (bits() & 1U) != 0;
  };
}

TEST_CASE("recompute does not change buffers and is bitwise equal to the plain run") {
  for (const NamedNetwork& network : all_networks()) {
    const Outcome plain = run_plain(network);
    const Trace trace = trace_of(network);
    for (const Schedule schedule : kSchedules) {
      for (const bool early_stop : {true, false}) {
        CAPTURE(network.name, to_string(schedule), early_stop);
        const Plan plan = plan_of_blocks(
            trace, [](int, int) { return false; }, early_stop);
        CHECK(first_difference(plain, run_engine(network, plan, schedule)) == "");
        CHECK(first_difference(plain, run_engine(network, plan, schedule, OutsideCheck::kHashes)) ==
              "");
      }
      for (std::uint32_t seed = 0; seed < num_seeds(12); ++seed) {
        CAPTURE(network.name, to_string(schedule), seed);
        const Plan plan = plan_of_blocks(trace, random_mask(seed), seed % 2 == 0);
        CHECK(first_difference(plain, run_engine(network, plan, schedule)) == "");
      }
    }
  }
}

// In the networks with rrelu, autograd saves the noise before the op computes it. With early stop,
// recompute would end at this last saved tensor and would not run the op.
TEST_CASE("running forward again with restored buffers is bitwise equal to the plain run") {
  for (const NamedNetwork& network : all_networks()) {
    CAPTURE(network.name);
    CHECK(first_difference(run_plain(network), run_closures(network, {.early_stop = false})) == "");
  }
}

// With or without the engine, backward reads the updated statistics.
TEST_CASE("evaluation is unaffected if another pass updates the statistics") {
  const NamedNetwork network =
      layers_of("evaluation", &running_statistics, [](const at::Tensor& x, const Parts& p) {
        return norm(at::mm(x, p.weights[0]), p, false).sin();
      });
  const auto train = [](const Network& made) {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < made.buffers.size(); i += 2) {
      at::batch_norm(made.input.detach(), {}, {}, made.buffers[i], made.buffers[i + 1], true, 0.5,
                     1e-5, false);
    }
  };
  seed_generator();
  const Network plain = network.make();
  const at::Tensor plain_loss = loss_of(forward_plain(plain));
  train(plain);
  plain_loss.backward();
  const Plan plan = plan_of_blocks(trace_of(network), [](int, int) { return false; });
  for (const Schedule schedule : kSchedules) {
    seed_generator();
    const Network made = network.make();
    Recording recording(strict(plan, schedule));
    const at::Tensor loss = loss_of(forward_with_scopes(made));
    train(made);
    loss.backward();
    CHECK(first_difference(outcome_of(plain, plain_loss), outcome_of(made, loss)) == "");
  }
}

TEST_CASE("a large buffer that a region has read is copied before a write to the buffer") {
  const NamedNetwork network = layers_of(
      "codebook",
      [] {
        return std::vector<at::Tensor>{floats({20000, kChannels})};
      },
      [](const at::Tensor& x, const Parts& p) {
        at::Tensor book = p.buffers[0];
        const at::Tensor y = at::sin(at::mm(x, p.weights[0]) + book.sum());
        book.mul_(0.9);
        return y.cos();
      });
  const Plan plan = plan_of_blocks(trace_of(network), [](int, int) { return false; });
  for (const Schedule schedule : kSchedules) {
    CHECK(first_difference(run_plain(network), run_engine(network, plan, schedule)) == "");
  }
}

struct RecomputeObserver final : OpObserver {
  void executed(const c10::OperatorHandle& op, Phase phase, const torch::jit::Stack&) override {
    if (phase == Phase::kRecompute) ops.push_back(facts_of(op).name);
  }
  std::vector<std::string> ops;
};

std::vector<std::string> recomputed(const NamedNetwork& network, const Plan& plan,
                                    Schedule schedule) {
  RecomputeObserver observer;
  OpObserverGuard guard(&observer);
  run_engine(network, plan, schedule);
  return observer.ops;
}

std::vector<std::string> predicted(const Trace& trace, const Plan& plan, Schedule schedule) {
  std::vector<std::pair<PackId, std::string>> ops;
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  for (std::size_t i = ranges.size(); i-- > 0;) {
    const RegionType& type = plan.types[static_cast<std::size_t>(plan.regions[i].type)];
    for (const ExecutedOp& op :
         simulate_region(trace, ranges[i].first, ranges[i].end, type, schedule).executed) {
      ops.emplace_back(op.demand, trace.ops[op.op].name);
    }
  }
  std::vector<std::string> names;
  names.reserve(ops.size());
  for (const auto& [demand, name] : ops) names.push_back(name);
  return names;
}

TEST_CASE("the simulator predicts which ops are recomputed") {
  for (const NamedNetwork& network : all_networks()) {
    const Trace trace = trace_of(network);
    for (const Schedule schedule : kSchedules) {
      for (std::uint32_t seed = 0; seed < num_seeds(6); ++seed) {
        CAPTURE(network.name, to_string(schedule), seed);
        const Plan plan = plan_of_blocks(
            trace, seed < 2 ? [](int, int) { return false; } : random_mask(seed), seed % 2 == 0);
        CHECK(recomputed(network, plan, schedule) == predicted(trace, plan, schedule));
      }
    }
  }
}

}  // namespace
}  // namespace rematch::testing
