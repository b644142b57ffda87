// Tests that a trace predicts exactly which bytes a run holds and which ops it recomputes.
#include "harness/trace/tracer.h"

#include <ATen/Functions.h>
#include <ATen/ScalarOps.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "harness/engine/record/opaque_call.h"
#include "harness/measure/memory.h"
#include "models/scope/scope.h"
#include "policies/base/json.h"
#include "policies/predict/step/step.h"
#include "policies/trace/trace_json.h"
#include "tests/support/catch.h"
#include "tests/support/networks.h"
#include "tests/support/step_meter.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

constexpr std::int64_t kTokens = 16;
constexpr std::int64_t kDim = 32;

using Layer = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w)>;

NamedNetwork network_of(const std::string& name, const Layer& layer) {
  return {name, [layer] {
            Network network;
            network.input = at::randn({kTokens, kDim}).requires_grad_();
            for (int i = 0; i < 3; ++i) {
              const at::Tensor w = at::randn({kDim, kDim}).mul_(0.1).requires_grad_();
              network.parameters.push_back(w);
              network.layers.push_back([layer, w](const at::Tensor& x) { return layer(x, w); });
            }
            return network;
          }};
}

// A rotary embedding as in diffusers: makes an empty tensor and fills one half after the other.
at::Tensor rotated(const at::Tensor& x) {
  const at::Tensor even = x.slice(1, 0, kDim, 2);
  const at::Tensor odd = x.slice(1, 1, kDim, 2);
  const at::Tensor cosine = at::cos(even.detach());
  const at::Tensor sine = at::sin(odd.detach());
  at::Tensor out = at::empty_like(x);
  const at::Tensor first = even * cosine - odd * sine;
  out.slice(1, 0, kDim, 2).copy_(first);
  const at::Tensor second = even * sine + odd * cosine;
  out.slice(1, 1, kDim, 2).copy_(second);
  return out;
}

at::Tensor rotate_both(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor query = rotated(at::mm(x, w));
  const at::Tensor key = rotated(at::mm(x, w.t()));
  return at::silu(at::mm(at::mm(query, key.t()), x));
}

// Uses a constant that no op computes, and later overwrites it. The recorder must copy the constant
// before the write.
at::Tensor with_filled_constant(const at::Tensor& x, const at::Tensor& w) {
  at::Tensor scale = at::empty({kDim});
  std::fill_n(scale.data_ptr<float>(), kDim, 0.5F);
  const at::Tensor y = at::mm(x + scale, w);
  scale.mul_(2);
  return at::silu(y + at::sin(scale));
}

// Uses a constant that no op computes, and frees it before forward ends.
at::Tensor with_short_lived_constant(const at::Tensor& x, const at::Tensor& w) {
  at::Tensor y;
  {
    at::Tensor scale = at::empty({kTokens, kDim});
    std::fill_n(scale.data_ptr<float>(), kTokens * kDim, 0.5F);
    y = x + scale;
  }
  return at::silu(at::mm(y, w));
}

// Splits a tensor into parts, writes to each part, and concatenates the parts again.
at::Tensor in_parts(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor y = at::mm(x, w);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : at::chunk(y.detach(), 2, 1)) {
    parts.push_back(at::empty_like(part));
    parts.back().copy_(part);
    parts.back().add_(1);
  }
  return at::silu(y * at::cat(parts, 1));
}

// Uses a detached tensor that was not made by an op. The tensor shares the storage of an op's
// result, and lives longer than the result.
at::Tensor through_data(const at::Tensor& x, const at::Tensor& w) {
  at::Tensor data;
  at::Tensor sum;
  {
    const at::Tensor y = at::mm(x, w);
    data = y.variable_data();
    sum = x + y;
  }
  const at::Tensor gate = at::sigmoid(data);
  data.reset();
  return at::silu(sum + gate);
}

// A buffer that every layer changes.
at::Tensor& buffer() {
  static at::Tensor seen = at::zeros({kDim});
  return seen;
}
at::Tensor with_side_effect(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor y = at::mm(x, w);
  buffer().add_(at::mean(y.detach(), 0));
  return at::silu(y);
}

// Makes tensors as the factories of Python and <torch/torch.h> do.
at::Tensor as_variable(at::Tensor made) {
  return torch::autograd::make_variable(std::move(made), /*requires_grad=*/false);
}
at::Tensor with_factories(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor y = at::mm(x, w);
  const at::Tensor order = at::argsort(at::sum(y.detach(), 1));
  const at::Tensor inverse = as_variable(at::empty_like(order));
  inverse.index_put_({order}, as_variable(at::arange(kTokens, order.options())));
  const at::Tensor mask = as_variable(at::rand_like(y));
  return at::silu(at::index(y, {inverse}) * mask);
}

// Fills a tensor through a pointer, reads it, and overwrites it twice.
at::Tensor with_overwritten_constants(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor scale = at::empty({kTokens, kDim});
  std::fill_n(scale.data_ptr<float>(), scale.numel(), 0.5F);
  const at::Tensor y = at::silu(at::mm(x, w) + scale);
  const at::Tensor z = at::sigmoid(y) * scale.sin();
  scale.mul_(2);
  scale.add_(1);
  return at::tanh(z + y * at::cos(scale));
}

// Overwrites lists of tensors. Recompute does not repeat such a write. One list contains only
// results of the layer; the other also contains a table from outside.
at::Tensor& counts() {
  static at::Tensor made = at::zeros({kDim});
  return made;
}
at::Tensor with_lists(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor y = at::mm(x, w);
  const at::Tensor a = y.detach().sin();
  const at::Tensor b = y.detach().cos();
  const at::Tensor before = at::sigmoid(y + a);
  at::_foreach_mul_({a, b}, 0.5);
  const at::Tensor z = at::silu(before + b + counts());
  const at::Tensor rows = b.slice(0, 0, 2);
  at::_foreach_add_({rows, counts()}, 1.0);
  return at::tanh(z * a + b * y);
}

// Ends with a batch norm. The next layer reads only its first result.
at::Tensor with_last_batch_norm(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor y = at::silu(at::mm(x, w));
  return std::get<0>(at::native_batch_norm(y, {}, {}, {}, {}, /*training=*/true, 0.1, 1e-5));
}

at::Tensor with_last_statistics(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor y = at::silu(at::mm(x, w));
  const at::Tensor weight = w[0];
  return std::get<0>(at::native_batch_norm(y, weight, weight, counts(), counts(), true, 0.1, 1e-5));
}

// Ends with another op that has several results.
at::Tensor with_last_sort(const at::Tensor& x, const at::Tensor& w) {
  return std::get<0>(at::sort(at::silu(at::mm(x, w)), 1));
}
at::Tensor with_last_layer_norm(const at::Tensor& x, const at::Tensor& w) {
  return std::get<0>(at::native_layer_norm(at::silu(at::mm(x, w)), {kDim}, {}, {}, 1e-5));
}

// Adds a number that is passed to the op as a tensor, like `x + 1e-5` in Python.
at::Tensor with_number(const at::Tensor& x, const at::Tensor& w) {
  return at::silu(at::add(at::mm(x, w), at::native::wrapped_scalar_tensor(1e-5)));
}

// Computes two results that backward never reads. Frees the first at once, and the second in the
// middle of the layer. Autograd then also frees the tensors that it saved for these results.
at::Tensor with_dead_branches(const at::Tensor& x, const at::Tensor& w) {
  at::mm(at::sigmoid(at::mm(x, w.t())), w);
  at::Tensor unread = at::silu(at::sigmoid(at::mm(x, w)));
  const at::Tensor y = at::tanh(at::mm(x, w));
  unread.reset();
  return at::silu(at::mm(y, w.t()));
}

// Reads a large table several times and overwrites it twice.
at::Tensor& table() {
  static at::Tensor made = at::ones({kTokens, kDim});
  return made;
}
at::Tensor with_overwritten_table(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor y = at::sin(at::mm(x, w) + table()) + table().abs();
  table().mul_(0.5);
  const at::Tensor z = at::silu(y + table());
  table().add_(1);
  return at::tanh(z);
}

// Reads views of a table, overwrites the table, and reads it again.
at::Tensor with_views_of_table(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor half = table().view({2, kTokens / 2, kDim}).select(0, 0);
  const at::Tensor y = at::sin(at::mm(x, w) + table().view({kTokens, kDim}));
  const at::Tensor z = at::silu(y * half.sin().repeat({2, 1}));
  table().mul_(0.5);
  half.add_(1);
  const at::Tensor last = at::tanh(z + table());
  table().add_(1);
  return last;
}

// Running statistics that a layer reads and then updates, like a batch norm in training.
struct Statistics {
  at::Tensor mean = at::zeros({kDim});
  at::Tensor variance = at::ones({kDim});
};
const Statistics& statistics() {
  static const Statistics made;
  return made;
}
at::Tensor with_batch_norm(const at::Tensor& x, const at::Tensor& w, bool is_training) {
  const auto& [mean, variance] = statistics();
  const at::Tensor y = at::mm(x, w) - mean;
  return at::silu(std::get<0>(
      at::native_batch_norm(y, {}, {}, mean, variance, is_training, /*momentum=*/0.1, 1e-5)));
}

// Calls two kernels that torch does not see. The first halves `q` in memory and returns views of
// `q`. The second overwrites a table from outside the layer.
at::Tensor with_opaque_calls(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor q = at::mm(x, w).detach();
  const at::Tensor before = at::cos(q);
  const at::Tensor gate = at::sigmoid(at::mm(x, w) * table());
  at::Tensor flat;
  at::Tensor unread;
  {
    const auto call = OpaqueCall::begin({q, table()});
    for (const at::Tensor& each : {q, table()}) {
      auto* const numbers =
          static_cast<float*>(each.unsafeGetTensorImpl()->storage().mutable_data());
      std::for_each_n(numbers, each.numel(), [](float& number) { number *= 0.5F; });
    }
    flat = q.view({-1});
    unread = q.t();
    if (call != nullptr) call->end("halve", {q, table()}, {flat, unread});
  }
  return at::silu(gate * at::sin(flat).view_as(q) * before);
}

// Makes three layers that share a table. Each layer overwrites the table and then reads it, so each
// layer overwrites what the previous layer has read.
NamedNetwork with_shared_table() {
  return {"table that the next layer overwrites", [] {
            Network network;
            network.input = at::randn({kTokens, kDim}).requires_grad_();
            const at::Tensor shared = at::randn({kTokens, kDim});
            for (int i = 0; i < 3; ++i) {
              const at::Tensor w = at::randn({kDim, kDim}).mul_(0.1).requires_grad_();
              network.parameters.push_back(w);
              network.layers.push_back([shared, w](const at::Tensor& x) {
                shared.mul_(0.9);
                return at::sin(at::mm(x, w) + shared) * shared.narrow(0, 0, 1).sum();
              });
            }
            return network;
          }};
}

std::vector<NamedNetwork> networks() {
  buffer();  // makes the buffers before any network uses them
  table();
  counts();
  statistics();
  return {network_of("rotary embedding in place", &rotate_both),
          network_of("a constant that is freed early", &with_short_lived_constant),
          network_of("parts", &in_parts),
          network_of("data", &through_data),
          network_of("number", &with_number),
          network_of("factories", &with_factories),
          network_of("side effect", &with_side_effect),
          network_of("overwritten table", &with_overwritten_table),
          network_of("overwritten constants", &with_overwritten_constants),
          network_of("a constant that is filled and written to later", &with_filled_constant),
          network_of("lists", &with_lists),
          network_of("views of a table", &with_views_of_table),
          network_of("last batch norm", &with_last_batch_norm),
          network_of("last batch norm with statistics", &with_last_statistics),
          network_of("last sort", &with_last_sort),
          network_of("last layer norm", &with_last_layer_norm),
          network_of("batch norm in training",
                     [](const at::Tensor& x, const at::Tensor& w) {
                       return with_batch_norm(x, w, /*is_training=*/true);
                     }),
          network_of("batch norm in evaluation",
                     [](const at::Tensor& x, const at::Tensor& w) {
                       return with_batch_norm(x, w, /*is_training=*/false);
                     }),
          network_of("opaque calls", &with_opaque_calls),
          network_of("dead branches", &with_dead_branches),
          with_shared_table()};
}

struct Step {
  std::int64_t after_forward_bytes = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t recomputed_ops = 0;
  bool operator==(const Step&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << step.after_forward_bytes << " after forward, peak " << step.peak_bytes << ", "
             << step.recomputed_ops << " ops recomputed";
}

Step measured(const NamedNetwork& named, const Plan& plan, Schedule schedule) {
  seed_generator();
  const Network network = named.make();
  StepMeter meter;
  at::Tensor loss;
  {
    Recording recording(strict(plan, schedule));
    loss = loss_of(forward_with_scopes(network));
  }
  meter.note_after_forward();
  loss.backward();
  return {meter.after_forward_bytes(), meter.peak_bytes(), meter.num_recomputed()};
}

Step predicted(const Trace& trace, const Plan& plan, Schedule schedule) {
  const StepPrediction step =
      StepSimulator(trace, OptimizerKind::kNothing).simulate(plan, schedule);
  return {(step.after_forward - step.before).count, (step.peak_bytes() - step.before).count,
          step.recomputed_ops};
}

TEST_CASE(
    "tracing a step in parts gives the trace of the whole step; parts in a wrong order are "
    "refused") {
  const NamedNetwork named =
      network_of("mm", [](const at::Tensor& x, const at::Tensor& w) { return at::mm(x, w).sin(); });
  Trace in_parts;
  {
    const Network network = named.make();
    TraceSession session;
    CHECK_THROWS_WITH(session.finish(), Catch::Contains("has not ended"));
    const at::Tensor loss = loss_of(forward_with_scopes(network));
    session.end_forward(loss.device());
    CHECK_THROWS_WITH(session.end_forward(loss.device()), Catch::Contains("has ended"));
    loss.backward();
    in_parts = session.finish();
    CHECK_THROWS_WITH(session.finish(), Catch::Contains("is finished"));
  }
  const Network network = named.make();
  const Trace whole = record_trace([&] { return loss_of(forward_with_scopes(network)); });
  CHECK(trace_to_json(in_parts) == trace_to_json(whole));
}

TEST_CASE("an op's list of writes contains each storage only once") {
  install_counting_allocators();
  buffer();  // makes the buffer before the network uses it
  std::size_t num_writes = 0;
  for (const TracedOp& op : trace_of(network_of("side effect", &with_side_effect)).ops) {
    num_writes += op.writes.size();
  }
  CHECK(num_writes == 3);  // each of three layers writes to the buffer
}

at::Tensor times_twice_itself(const at::Tensor& x) {
  const at::Tensor y = x.detach().clone();
  at::_foreach_mul_({y}, 2.0);
  return x * y;
}

// Sharded training fills gathered parameters by ops that write into a list of tensors.
TEST_CASE("a write into a list of tensors is traced") {
  const NamedNetwork plain =
      network_of("mm", [](const at::Tensor& x, const at::Tensor& w) { return at::mm(x, w); });
  const Network network = plain.make();
  const Trace trace = record_trace([&] {
    const at::Tensor loss = loss_of(forward_with_scopes(network));
    const Scope head("head");  // not a block, so no policy makes it a region
    return loss + times_twice_itself(network.input).sum();
  });
  const auto found = std::find_if(trace.ops.begin(), trace.ops.end(), [](const TracedOp& op) {
    return op.name == "aten::_foreach_mul_.Scalar";
  });
  REQUIRE(found != trace.ops.end());
  const TracedOp& clone = *(found - 1);
  REQUIRE(clone.outputs.size() == 1);
  const StorageId cloned = trace.values[clone.outputs[0]].storage;
  CHECK(found->overwrites == std::vector<StorageId>{cloned});
  const TracedOp& restored = *(found + 1);
  CHECK(restored.name == "rematch::restore_content");
  CHECK(restored.writes == std::vector<StorageId>{cloned});
  const TracedOp& product = *(found + 2);
  CHECK(product.inputs.back().version == 1);  // the content after the write
}

TEST_CASE("the trace predicts every byte that a plain run holds") {
  install_counting_allocators();
  for (const NamedNetwork& network : networks()) {
    CAPTURE(network.name);
    const Trace trace = trace_of(network);
    CHECK(measured(network, Plan{}, Schedule::kOnDemand) ==
          predicted(trace, Plan{}, Schedule::kOnDemand));
  }
}

// The first pass of self-conditioning runs without grad mode. The engine opens no region for it, so
// the trace contains only the second pass.
TEST_CASE("a pass without grad mode opens no scopes in a trace") {
  install_counting_allocators();
  const auto step_of = [](const Network& network) {
    at::Tensor guess;
    {
      const at::NoGradGuard no_grad;
      guess = forward_with_scopes(network);
    }
    return loss_of(forward_with_scopes(network) + guess);
  };
  const NamedNetwork named = network_of(
      "tanh", [](const at::Tensor& x, const at::Tensor& w) { return at::tanh(at::mm(x, w)); });
  const Network traced = named.make();
  const Trace trace = record_trace([&] { return step_of(traced); });
  CHECK(trace.blocks.size() == 3);
  CHECK(trace.scopes.size() == 3);
  CHECK(trace.scopes[trace.blocks[0].scope].first_op == OpId(6));
  const Plan full = plan_of_blocks(trace, [](int, int) { return false; });
  const Network network = named.make();
  StepMeter meter;
  at::Tensor loss;
  {
    Recording recording(strict(full, Schedule::kOnDemand));
    loss = step_of(network);
  }
  meter.note_after_forward();
  loss.backward();
  const Step step{meter.after_forward_bytes(), meter.peak_bytes(), meter.num_recomputed()};
  CHECK(step == predicted(trace, full, Schedule::kOnDemand));
}

TEST_CASE("the trace predicts what a checkpointed run holds and recomputes") {
  install_counting_allocators();
  for (const NamedNetwork& network : networks()) {
    CAPTURE(network.name);
    const Trace trace = trace_of(network);
    for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
      CAPTURE(to_string(schedule));
      const Plan full = plan_of_blocks(trace, [](int, int) { return false; });
      CHECK(measured(network, full, schedule) == predicted(trace, full, schedule));
      for (const int parity : {0, 1}) {
        const Plan half = plan_of_blocks(trace, [&](int, int op) { return op % 2 == parity; });
        CHECK(measured(network, half, schedule) == predicted(trace, half, schedule));
      }
    }
  }
}

}  // namespace
}  // namespace rematch::testing
