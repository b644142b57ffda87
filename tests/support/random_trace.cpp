#include "tests/support/random_trace.h"

#include <optional>
#include <random>

#include "tests/support/trace_builder.h"

namespace rematch::testing {
namespace {

// Uses plain modulo, because std distributions give different numbers in different standard
// libraries.
class Dice {
 public:
  explicit Dice(std::uint32_t seed) : engine_(seed) {}
  int below(int limit) { return static_cast<int>(engine_() % static_cast<std::uint32_t>(limit)); }
  bool percent(int chance) { return below(100) < chance; }

 private:
  std::mt19937 engine_;
};

// Runs random ops over a pool of values. The first value of the pool is the span's input, and the
// last value its result.
class Span {
 public:
  Span(TraceBuilder& build, std::uint32_t seed, ValueId input, const RandomTraceOptions& options)
      : build_(build),
        dice_(seed),
        pool_{input},
        names_say_saves_(options.names_say_saves),
        collectives_(options.collectives) {}

  ValueId run(int num_ops) {
    int done = 0;
    while (done < num_ops) {
      const int part = 1 + dice_.below(num_ops - done);
      if (dice_.percent(60)) {
        const auto scope = build_.scope(dice_.percent(50) ? "attention" : "ffn");
        if (dice_.percent(30)) {
          const auto inner = build_.scope("core");
          some_ops(part);
        } else {
          some_ops(part);
        }
      } else {
        some_ops(part);
      }
      done += part;
    }
    while (!started_.empty()) wait_for_one();
    return join();
  }

 private:
  void some_ops(int count) {
    for (int index = 0; index < count; ++index) one_op();
  }

  // Reads every value that nothing has read, so that backward reaches every op. The result has the
  // input's shape.
  ValueId join() {
    std::vector<ValueId> loose = {pool_.front()};
    for (const ValueId value : pool_) {
      if (is_loose(value) && value != loose.back()) loose.push_back(value);
    }
    const ValueId all = build_.call("aten::cat", loose, {static_cast<int>(loose.size()), 64});
    return build_.call("aten::add.Tensor", {pool_.front(), all}, build_.shape(pool_.front()));
  }

  // Returns whether no op has read the value since it was last written.
  bool is_loose(ValueId value) const {
    const auto& ops = build_.trace().ops;
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
      if (!op->inputs.empty() && !op->writes.empty() && op->inputs[0].value == value) return true;
      for (const TracedUse& use : op->inputs) {
        if (use.value == value) return false;
      }
      for (const ValueId output : op->outputs) {
        if (output == value) return true;
      }
    }
    return false;
  }

  ValueId pick() {
    return pool_[static_cast<std::size_t>(dice_.below(static_cast<int>(pool_.size())))];
  }

  Shape some_shape() { return {1 + dice_.below(8), 1 + dice_.below(512)}; }

  Saves some_saves(int num_inputs, int num_outputs) {
    Saves saves;
    for (int position = 0; position < num_inputs; ++position) {
      if (dice_.percent(50)) saves.inputs.push_back(position);
    }
    for (int position = 0; position < num_outputs; ++position) {
      if (dice_.percent(25)) saves.outputs.push_back(position);
    }
    return saves;
  }

  void one_op() {
    if (collectives_ && !started_.empty() && dice_.percent(30)) wait_for_one();
    const int kind = dice_.below(100);
    if (collectives_ && kind >= 85) {
      collective();
    } else if (kind < 20) {
      matmul();
    } else if (kind < 30) {
      attention();
    } else if (kind < 45) {
      view();
    } else if (kind < 55) {
      write();
    } else if (kind < 62) {
      draw();
    } else if (kind < 66) {
      mask();
    } else {
      elementwise();
    }
  }

  void matmul() {
    const ValueId x = pick();
    const std::int64_t inner = build_.shape(x).back();
    const std::int64_t channels = 1 + dice_.below(256);
    const ValueId weight = build_.parameter({channels, inner});
    const ValueId transposed = build_.view("aten::t", weight, {inner, channels});
    const Shape shape = {build_.shape(x).front(), channels};
    pool_.push_back(build_.call(dice_.percent(70) ? "aten::mm" : "aten::bmm", {x, transposed},
                                shape, {{0, 1}, {}}));
  }

  void attention() {
    const ValueId q = pick();
    const Shape shape = build_.shape(q);
    const std::vector<ValueId> inputs = {q, pick(), pick()};
    pool_.push_back(
        build_.op("rematch::attention", inputs, {shape, {shape.front()}}, {{0, 1, 2}, {0, 1}})
            .front());
  }

  void view() {
    const ValueId x = pick();
    Shape shape = build_.shape(x);
    shape = {shape.back(), shape.front()};
    pool_.push_back(
        build_.view(dice_.percent(50) ? "aten::transpose.int" : "aten::view", x, shape));
  }

  // Writes only to a value that this span made and that nothing packed, so the gradient stays
  // correct.
  void write() {
    const std::optional<ValueId> target = writable();
    if (!target) return elementwise();
    build_.in_place("aten::add_.Tensor", {*target, pick()});
    pool_.push_back(*target);
  }

  std::optional<ValueId> writable() {
    for (int attempt = 0; attempt < 4; ++attempt) {
      const ValueId value = pick();
      if (value != pool_.front() && !build_.was_packed(value) && is_own(value)) return value;
    }
    return std::nullopt;
  }

  bool is_own(ValueId value) {
    const auto& values = build_.trace().values;
    const StorageId storage = values[value].storage;
    return storage != values[pool_.front()].storage;
  }

  void draw() {
    const ValueId x = pick();
    const ValueId noise = build_.call("aten::rand_like", {x}, build_.shape(x));
    build_.last_op_draws();
    pool_.push_back(build_.call("aten::mul.Tensor", {x, noise}, build_.shape(x), {{1}, {}}));
  }

  void mask() {
    const ValueId x = pick();
    const ValueId mask = build_.call("aten::gt.Scalar", {x}, build_.shape(x));
    build_.last_output_is("bool");
    pool_.push_back(build_.call("aten::where.self", {mask, x, pick()}, build_.shape(x), {{0}, {}}));
  }

  // Runs a collective with one or two results, or a sum in place. Waits for it at once or after
  // other ops.
  void collective() {
    const std::optional<ValueId> target = writable();
    if (target && dice_.percent(30)) {
      build_.in_place("_c10d_functional::all_reduce_", {*target});
      build_.wait(*target);
      return;
    }
    const int num_results = 1 + dice_.below(2);
    std::vector<ValueId> inputs;
    std::vector<Shape> shapes;
    for (int index = 0; index < num_results; ++index) {
      inputs.push_back(pick());
      shapes.push_back(some_shape());
    }
    const std::vector<ValueId> results =
        build_.op("_c10d_functional::all_gather_into_tensor_coalesced", inputs, shapes);
    started_.insert(started_.end(), results.begin(), results.end());
    if (dice_.percent(50)) wait_for_one();
  }

  // Waits for one result, sometimes through a view. Other ops may read the result only afterwards.
  void wait_for_one() {
    const auto which = static_cast<std::size_t>(dice_.below(static_cast<int>(started_.size())));
    const ValueId result = started_[which];
    started_.erase(started_.begin() + static_cast<std::ptrdiff_t>(which));
    if (dice_.percent(30)) {
      const Shape shape = {build_.shape(result).back(), build_.shape(result).front()};
      pool_.push_back(build_.view("aten::view", result, shape));
    } else {
      pool_.push_back(result);
    }
    build_.wait(pool_.back());
    pool_.push_back(result);
  }

  void elementwise() {
    static constexpr const char* kNames[] = {"aten::mul.Tensor", "aten::add.Tensor", "aten::silu",
                                             "aten::sum.dim_IntList"};
    const int which = dice_.below(4);
    std::vector<ValueId> inputs = {pick()};
    if (which < 2) inputs.push_back(pick());
    const Saves saves = some_saves(static_cast<int>(inputs.size()), 1);
    const bool is_renamed = names_say_saves_ && !saves.outputs.empty();
    const char* name = is_renamed ? "aten::sigmoid" : kNames[which];
    pool_.push_back(build_.call(name, inputs, some_shape(), saves));
  }

  TraceBuilder& build_;
  Dice dice_;
  std::vector<ValueId> pool_;
  bool names_say_saves_;
  bool collectives_;
  std::vector<ValueId> started_;  // results that nothing has waited for yet
};

}  // namespace

Trace random_trace(std::uint32_t seed, const RandomTraceOptions& options) {
  TraceBuilder build("random");
  build.trace().dimensions = {{"layers", options.layers}, {"seed", seed}};
  Dice dice(seed);
  const Shape shape = {4, 1 + dice.below(512)};
  ValueId x = build.outside(shape, "float32", /*needs_grad=*/true);
  {
    const auto scope = build.scope("embed");
    x = Span(build, seed * 977 + 1, x, options).run(options.ops_outside_blocks);
  }
  for (int layer_index = 0; layer_index < options.layers; ++layer_index) {
    const int type = dice.below(options.block_types);
    {
      const auto scope = build.scope("blocks", layer_index);
      x = Span(build, seed * 977 + 100 + static_cast<std::uint32_t>(type), x, options)
              .run(options.ops_per_block);
    }
    if (options.ops_outside_blocks > 0 && dice.percent(15)) {
      x = build.call("aten::mul.Tensor", {x, x}, shape, {{1, 0}, {}});
    }
  }
  {
    const auto scope = build.scope("head");
    x = Span(build, seed * 977 + 2, x, options).run(options.ops_outside_blocks);
  }
  {
    const auto scope = build.scope("loss");
    build.call("aten::mse_loss", {x, build.outside(shape)}, {}, {{0, 1}, {}});
  }
  return build.finish();
}

}  // namespace rematch::testing
