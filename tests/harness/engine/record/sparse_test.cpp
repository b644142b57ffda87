// Tests writes to the values of sparse tensors, which have no storage of their own. Writes under
// any name are ordered before and after the ops that read the values.
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

// A write between the creation of a sparse tensor and its product. `name` says which tensor is
// written to.
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
  const at::Tensor starts = at::arange(5, at::kLong);  // row i begins at element i, so each row has
                                                       // one element
  return at::sparse_csr_tensor(starts, indices[1].contiguous(), values, {4, 4},
                               values.options().layout(at::kSparseCsr));
}

const std::vector<SparseWrite>& writes() {
  using T = const at::Tensor&;
  static const std::vector<SparseWrite> all = {
      {"none", by_coordinates, [](T, T) {}},
      {"values()", by_coordinates, [](T sparse, T) { sparse.values().mul_(0.5); }},
      {"the tensor it was made of", by_coordinates, [](T, T values) { values.mul_(2.0); }},
      {"the sparse tensor", by_coordinates, [](T sparse, T) { sparse.mul_(2.0); }},
      {"the sparse tensor and its values", by_coordinates,
       [](T sparse, T values) {
         sparse.values().mul_(0.5);
         values.add_(1.0);
         sparse.mul_(2.0);
         values.add_(1.0);
       }},
      {"other values of the sparse tensor", by_coordinates,
       [](T sparse, T) { sparse.add_(sparse * 0.25); }},
      {"none, by rows", by_rows, [](T, T) {}},
      {"_values()", by_coordinates, [](T sparse, T) { sparse._values().div_(3.0); }},
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

TEST_CASE("a write to the values of a sparse tensor affects only its readers") {
  for (const SparseWrite& what : writes()) {
    CAPTURE(what.name);
    check_equal(case_of(what));
  }
}

TEST_CASE("a write to the indices of a sparse tensor is refused") {
  const Case given{[](const at::Tensor& x, const at::Tensor& w) {
    const at::Tensor y = at::mm(x, w);
    const at::Tensor columns = at::arange(4, at::kLong);
    const at::Tensor indices = at::stack({columns, columns});
    const at::Tensor sparse = by_coordinates(indices, at::sigmoid(w.detach()[0]));
    indices[1].remainder_(3);
    return at::mm(sparse, y.sin());
  }};
  CHECK_THROWS_WITH(given.plan(), Catch::Contains("the indices of a sparse tensor"));
}

TEST_CASE("a write to the values of a compressed tensor is refused") {
  const SparseWrite what{
      "values(), by rows", by_rows,
      [](const at::Tensor& sparse, const at::Tensor&) { sparse.values().mul_(0.5); }};
  CHECK_THROWS_WITH(case_of(what).plan(), Catch::Contains("the values of a compressed tensor"));
}

TEST_CASE("an op may have more items and results than sixteen bits count") {
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
