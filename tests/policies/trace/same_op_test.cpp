#include "policies/trace/trace_op.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

TEST_CASE("a reshape without a copy is the same op under two names") {
  CHECK(is_same_op("aten::view", "aten::view"));
  CHECK(is_same_op("aten::view", "aten::_reshape_alias"));
  CHECK(is_same_op("aten::_reshape_alias", "aten::view"));
  CHECK(is_same_op("aten::mm", "aten::mm"));
}

TEST_CASE("ops that differ in allocating or writing are different ops") {
  CHECK_FALSE(is_same_op("aten::add.Tensor", "aten::add_.Tensor"));
  CHECK_FALSE(is_same_op("aten::view", "aten::_unsafe_view"));
  CHECK_FALSE(is_same_op("aten::view", "aten::view.dtype"));
  CHECK_FALSE(is_same_op("aten::reshape", "aten::clone"));
}

TEST_CASE("counts of an op under both of its names are added") {
  using Counts = std::map<std::string, std::int64_t>;
  CHECK(with_one_name({{"aten::_reshape_alias", 2}, {"aten::mm", 3}, {"aten::view", 5}}) ==
        Counts{{"aten::mm", 3}, {"aten::view", 7}});
  CHECK(with_one_name({{"aten::_reshape_alias", 2}}) == Counts{{"aten::view", 2}});
  CHECK(with_one_name({}).empty());
}

}  // namespace
}  // namespace rematch
