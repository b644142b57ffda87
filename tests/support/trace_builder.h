// Builds valid traces by hand for tests. The test calls ops one by one, as a model would; the
// builder tracks values, storages, versions and packs. finish() adds the backward that autograd
// would run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/trace/trace.h"

namespace rematch::testing {

using Shape = std::vector<std::int64_t>;

// The inputs and outputs that an op's backward demands, by position, in packing order.
struct Saves {
  std::vector<int> inputs;
  std::vector<int> outputs;
};

class TraceBuilder {
 public:
  // Leaves its scope when it is destroyed.
  class OpenScope {
   public:
    OpenScope(TraceBuilder& builder, ScopeId scope) : builder_(builder), scope_(scope) {}
    ~OpenScope() { builder_.close(scope_); }
    OpenScope(const OpenScope&) = delete;
    OpenScope& operator=(const OpenScope&) = delete;

   private:
    TraceBuilder& builder_;
    ScopeId scope_;
  };

  explicit TraceBuilder(std::string model, std::string dtype = "float32");

  // A layer index makes the scope a block: scope("blocks", 3) is "blocks.3".
  [[nodiscard]] OpenScope scope(std::string_view name,
                                std::optional<int> layer_index = std::nullopt);

  ValueId parameter(Shape shape);
  ValueId outside(Shape shape, std::string dtype = "float32", bool needs_grad = false);

  // Adds an op with fresh outputs, each with its own storage.
  std::vector<ValueId> op(std::string name, std::vector<ValueId> inputs,
                          std::vector<Shape> output_shapes, const Saves& saves = {});
  // Adds an op with a single fresh output.
  ValueId call(std::string name, std::vector<ValueId> inputs, Shape shape, const Saves& saves = {});
  ValueId view(std::string name, ValueId input, Shape shape);
  // Adds an op that writes to its first input.
  void in_place(std::string name, std::vector<ValueId> inputs, const Saves& saves = {});
  // Adds the op that completes the collective which produced `value`. The op has no autograd node.
  void wait(ValueId value);
  // Sets the dtype of the last op's output, and marks the output as a tensor without a gradient.
  void last_output_is(std::string dtype);
  // Marks the last op as an op that advances a generator.
  void last_op_draws();

  bool needs_grad(ValueId value) const { return needs_grad_[value]; }
  bool was_packed(ValueId value) const;  // whether any value in the same storage was packed
  const Shape& shape(ValueId value) const;
  Trace& trace() { return trace_; }

  // Adds the backward events, from the last op to the first, and the bytes of the parameters.
  Trace finish();

 private:
  struct Node {
    OpId op;
    std::vector<PackId> packs;
  };

  void close(ScopeId scope);
  void free_storages();
  ValueId add_value(std::optional<OpId> producer, StorageId storage, Shape shape,
                    std::string dtype);
  StorageId add_storage(const Shape& shape, std::string_view dtype);
  OpId add_op(std::string name, const std::vector<ValueId>& inputs);
  void pack(Node& node, ValueId value);
  void pack_inputs(Node& node, const std::vector<ValueId>& inputs, const Saves& saves);
  std::int32_t version_of(ValueId value) const;

  Trace trace_;
  std::vector<ScopeId> open_;
  IdTable<ValueId, bool> needs_grad_;
  IdTable<StorageId, std::int32_t> versions_;
  IdTable<StorageId, bool> packed_;
  std::vector<Node> nodes_;  // autograd nodes, in forward order
};

}  // namespace rematch::testing
