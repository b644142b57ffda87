#include "harness/measure/hash.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>

#include "tests/support/catch.h"

namespace rematch {
namespace {

TEST_CASE("a tensor's hash is the beginning of the SHA-256 of its bytes") {
  // The expected values are the first digits of two SHA-256 hashes: of four zero bytes, and of the
  // bytes 00 00 00 00 00 00 80 3f, which are [0, 1] in float32.
  CHECK(tensor_hash(at::zeros({1})) == "df3f619804a92fdb4057192dc43dd748");
  CHECK(tensor_hash(at::arange(2, at::kFloat)) == "22b6f43bd8d27738d3213f29e96b62d0");
  CHECK(tensor_hash(at::Tensor()).empty());
}

TEST_CASE("the hash depends on elements, not on storage") {
  const at::Tensor table = at::arange(6, at::kFloat).view({2, 3});
  CHECK(tensor_hash(table.t().contiguous()) == tensor_hash(table.t()));
  CHECK(tensor_hash(table.t()) != tensor_hash(table));
  CHECK(tensor_hash(table[0]) == tensor_hash(at::arange(3, at::kFloat)));
}

TEST_CASE("several tensors hash like the concatenation of their bytes") {
  const at::Tensor all = at::arange(6, at::kFloat);
  CHECK(tensors_hash({all.slice(0, 0, 2), at::Tensor(), all.slice(0, 2)}) == tensor_hash(all));
}

TEST_CASE("tensors hashed in parallel have the same hashes in the same order") {
  std::vector<at::Tensor> tensors(9);
  std::vector<std::string> expected(1);  // hash of an undefined tensor
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    tensors[i] = at::rand({static_cast<std::int64_t>(1000 * i)});
    expected.push_back(tensor_hash(tensors[i]));
  }
  CHECK(tensor_hashes(tensors) == expected);
  CHECK(tensor_hashes({}).empty());
}

TEST_CASE("one changed bit changes the hash") {
  at::Tensor zero = at::zeros({3});
  const std::string before = tensor_hash(zero);
  zero[1].neg_();  // -0 equals 0 as a number but differs in one bit
  CHECK(tensor_hash(zero) != before);
}

TEST_CASE("drawing a number changes the generator's hash") {
  const std::string before = generator_hash(at::kCPU);
  CHECK(generator_hash(at::kCPU) == before);
  at::rand({1});
  CHECK(generator_hash(at::kCPU) != before);
}

TEST_CASE("bits are printed with leading zeros") {
  CHECK(bits_of(1.0F) == "0x3f800000");
  CHECK(bits_of(0.0F) == "0x00000000");
  CHECK(bits_of(-2.0) == "0xc000000000000000");
}

}  // namespace
}  // namespace rematch
