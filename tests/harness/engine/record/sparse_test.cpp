// Tests writes to the indices and values of sparse tensors. A sparse tensor has no storage of its
// own. A write may go to the indices, to the values, or to a view of either. In each case,
// recompute must repeat the write in the right order relative to the ops that read the sparse
// tensor.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/outside_case.h"

namespace rematch::testing {
namespace {

// A write after a sparse tensor is created and before it is multiplied. `name` says which tensor
// the write changes.
struct SparseWrite {
  const char* name;
  std::function<at::Tensor(const at::Tensor& indices, const at::Tensor& values)> make;
  std::function<void(const at::Tensor& sparse, const at::Tensor& values)> write;
};

at::Tensor by_coordinates(const at::Tensor& indices, const at::Tensor& values) {
  return at::sparse_coo_tensor(indices, values, {4, 4}, values.options().layout(at::kSparse),
                               /*is_coalesced=*/true);
}

at::Tensor by_rows(const at::Tensor& indices, const at::Tensor& values) {
  const at::Tensor starts = at::arange(5, at::kLong);  // each row has one element
  return at::sparse_compressed_tensor(starts, indices[1].contiguous(), values, {4, 4},
                                      values.options().layout(at::kSparseCsr));
}

const std::vector<SparseWrite>& writes() {
  using T = const at::Tensor&;
  static const std::vector<SparseWrite> all = {
      {"none", by_coordinates, [](T, T) {}},
      {"values()", by_coordinates, [](T sparse, T) { sparse.values().mul_(0.5); }},
      {"the tensor that provided the values", by_coordinates,
       [](T, T values) { values.mul_(2.0); }},
      {"the sparse tensor", by_coordinates, [](T sparse, T) { sparse.mul_(2.0); }},
      {"the sparse tensor and its values", by_coordinates,
       [](T sparse, T values) {
         sparse.values().mul_(0.5);
         values.add_(1.0);
         sparse.mul_(2.0);
         values.add_(1.0);
       }},
      {"the sparse tensor, by an op that replaces its values", by_coordinates,
       [](T sparse, T) { sparse.add_(sparse * 0.25); }},
      {"none, by rows", by_rows, [](T, T) {}},
      {"_values()", by_coordinates, [](T sparse, T) { sparse._values().div_(3.0); }},
      {"indices()", by_coordinates, [](T sparse, T) { sparse.indices()[1].remainder_(3); }},
      {"indices() and values()", by_coordinates,
       [](T sparse, T) {
         sparse.values().mul_(0.5);
         sparse.indices()[1].remainder_(3);
         sparse.values().add_(1.0);
       }},
      {"indices() of another sparse tensor", by_coordinates,
       [](T sparse, T) { at::sin(sparse).indices()[1].remainder_(3); }},
      {"values(), by rows", by_rows, [](T sparse, T) { sparse.values().mul_(0.5); }},
      {"the tensor that provided the values, by rows", by_rows,
       [](T, T values) { values.mul_(2.0); }},
      {"the sparse tensor, by rows", by_rows, [](T sparse, T) { sparse.mul_(2.0); }},
      {"col_indices()", by_rows, [](T sparse, T) { sparse.col_indices().remainder_(3); }},
      {"crow_indices()", by_rows,
       [](T sparse, T) { sparse.crow_indices().slice(0, 1, 4).fill_(4); }},
      {"all parts, by rows", by_rows,
       [](T sparse, T) {
         sparse.copy_(at::sin(sparse));
         sparse.col_indices().remainder_(2);
       }},
  };
  return all;
}

Case case_of(const SparseWrite& what) {
  return {[&what](const at::Tensor& x, const at::Tensor& w) {
    const at::Tensor y = at::mm(x, w);
    const at::Tensor columns = at::arange(4, at::kLong);
    const at::Tensor values = at::sigmoid(w.detach()[0]) * (x.detach().mean() + 2.0);
    const at::Tensor sparse = what.make(at::stack({columns, columns}), values);
    what.write(sparse, values);
    const at::Tensor h = at::mm(sparse, y.sin());
    return at::sin(h) * h;
  }};
}

TEST_CASE("only the readers of a part of a sparse tensor see a write to that part") {
  for (const SparseWrite& what : writes()) {
    CAPTURE(what.name);
    check_equal(case_of(what));
  }
}

// The layer makes the indices and the values of its sparse tensor, unless they come from outside
// the region. The layer reads the sparse tensor before and after a write, so recompute needs both
// contents.
struct SparseParts {
  const char* name;
  bool indices_from_outside;
  bool values_from_outside;
};

using MakeSparse = std::function<at::Tensor(const at::Tensor& indices, const at::Tensor& values)>;
using WriteParts = std::function<void(const at::Tensor& sparse, const at::Tensor& indices,
                                      const at::Tensor& values)>;

Case read_write_read(const SparseParts& parts, const MakeSparse& make, const WriteParts& write) {
  struct Outside {
    at::Tensor indices;
    at::Tensor values;
  };
  const auto outside = std::make_shared<Outside>();
  Case given;
  given.prepare = [outside] {
    const at::Tensor columns = at::arange(4, at::kLong);
    outside->indices = at::stack({columns, columns});
    outside->values = at::arange(4).add(1.0).to(at::kFloat);
  };
  given.layer = [=](const at::Tensor& x, const at::Tensor& w) {
    const at::Tensor y = at::mm(x, w);
    const at::Tensor columns = at::arange(4, at::kLong);
    const at::Tensor indices =
        parts.indices_from_outside ? outside->indices : at::stack({columns, columns});
    const at::Tensor values = parts.values_from_outside
                                  ? outside->values
                                  : at::sigmoid(w.detach()[0]) + x.detach().mean();
    const at::Tensor sparse = make(indices, values);
    const at::Tensor before = at::mm(sparse, y.detach().sin()).cos();
    write(sparse, indices, values);
    const at::Tensor h = at::mm(sparse, (y * before).sin());
    return at::sin(h) * h * before;
  };
  return given;
}

TEST_CASE("only later reads see a write to a part of a sparse tensor") {
  using T = const at::Tensor&;
  const std::vector<std::pair<const char*, MakeSparse>> kinds = {{"by coordinates", by_coordinates},
                                                                 {"by rows", by_rows}};
  const std::vector<std::pair<const char*, WriteParts>> all_writes = {
      {"none", [](T, T, T) {}},
      {"the tensor of indices", [](T, T indices, T) { indices[1].remainder_(3); }},
      {"the tensor of values", [](T, T, T values) { values.mul_(0.5); }},
      {"values()", [](T sparse, T, T) { sparse.values().mul_(0.5); }},
      {"the sparse tensor", [](T sparse, T, T) { sparse.mul_(0.5); }},
      {"both", [](T sparse, T indices, T) {
         indices[1].remainder_(3);
         sparse.values().mul_(0.5);
         indices[1].remainder_(2);
       }}};
  for (const SparseParts& parts :
       {SparseParts{"both inside", false, false}, SparseParts{"indices from outside", true, false},
        SparseParts{"values from outside", false, true},
        SparseParts{"both from outside", true, true}}) {
    for (const auto& [kind, make] : kinds) {
      for (const auto& [name, write] : all_writes) {
        CAPTURE(parts.name, kind, name);
        check_equal(read_write_read(parts, make, write));
      }
    }
  }
}

TEST_CASE("an op may have more list items and results than 16 bits can count") {
  for (const std::int64_t num_items : {1'000, 40'000, 70'000}) {
    CAPTURE(num_items);
    check_equal({[num_items](const at::Tensor& x, const at::Tensor& w) {
      const at::Tensor y = at::mm(x, w).sin();
      const at::Tensor many = y.reshape({-1}).repeat({num_items / 16 + 1}).slice(0, 0, num_items);
      const at::Tensor again = at::stack(at::unbind(many * 1.5, 0));
      return y * at::cos(again.slice(0, num_items - 16)).view({4, 4});
    }});
  }
}

}  // namespace
}  // namespace rematch::testing
