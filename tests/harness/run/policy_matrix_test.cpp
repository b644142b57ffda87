// Tests every policy on every family of models. Executed ops, bytes and rejections are predicted on
// meta and measured on the CPU, and must equal approved files. On the CPU, bits must equal the bits
// without checkpointing.
#include "tests/support/policy_matrix.h"

#include <algorithm>
#include <set>

#include "policies/catalogue/catalogue.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/seeds.h"

namespace rematch::testing {
namespace {

using Names = std::vector<std::string>;

constexpr std::size_t kSlice = 16;

std::string file_of(const MatrixModel& model) {
  const bool fused = model.dimensions.contains("fused_ops");
  return "matrix/" + model.preset + (fused ? "_fused" : "") + ".txt";
}

std::string predicted_matrix(const MatrixModel& model) {
  PolicyMatrix matrix(model);
  std::string text = matrix.head();
  for (const std::string& policy : matrix_policies()) {
    for (const std::string& row : matrix.predicted_rows(policy)) text += row + "\n";
  }
  return text;
}

// Returns the set of lines of an approved file.
std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.insert(text.substr(begin, end - begin));
  }
  return lines;
}

// Tests that are not deep measure only every `slice`-th policy, beginning at index `first`.
Names policies_to_measure(std::size_t first, std::size_t slice) {
  const Names all = matrix_policies();
  if (is_deep()) return all;
  Names some;
  for (std::size_t i = first % slice; i < all.size(); i += slice) some.push_back(all[i]);
  return some;
}

TEST_CASE("each policy's executed ops and held bytes on each model equal the approved file",
          "[golden]") {
  for (const MatrixModel& model : matrix_models()) {
    CAPTURE(model.preset);
    check_golden(file_of(model), predicted_matrix(model));
  }
}

TEST_CASE("every catalogue entry appears in the matrix") {
  const std::vector<std::string> policies = matrix_policies();
  for (const CatalogueEntry& entry : catalogue()) {
    CAPTURE(entry.name);
    CHECK(std::any_of(policies.begin(), policies.end(), [&](const std::string& policy) {
      return policy.substr(0, policy.find('(')) == entry.name;
    }));
  }
}

void check_runs_as_predicted(PolicyMatrix& matrix, const std::string& policy, Schedule schedule,
                             const StepBits& bits_of_none) {
  CAPTURE(policy, schedule);
  const EngineFigures measured = matrix.measured(policy, schedule);
  const EngineFigures predicted = matrix.predicted(policy, schedule);
  CHECK(matrix.row(policy, schedule, measured) == matrix.row(policy, schedule, predicted));
  CHECK(measured.counts.by_op == predicted.counts.by_op);
  CHECK(matrix.bits(policy, schedule) == bits_of_none);
}

TEST_CASE(
    "measured ops and bytes equal the approved file, and bits equal those without checkpointing") {
  const std::vector<MatrixModel> models = matrix_models();
  for (std::size_t i = 0; i < models.size(); ++i) {
    CAPTURE(models[i].preset);
    const std::set<std::string> approved = lines_of(read_golden(file_of(models[i])));
    PolicyMatrix matrix(models[i]);
    const StepBits none = matrix.bits("none", Schedule::kOnDemand);
    CHECK(std::none_of(none.gradients.begin(), none.gradients.end(),
                       [](const auto& gradient) { return gradient.second.empty(); }));
    for (const std::string& policy : policies_to_measure(i, kSlice)) {
      if (!matrix.refusal(policy).empty()) {
        CAPTURE(policy);
        CHECK(approved.contains(matrix.refused_row(policy)));
      }
      for (const Schedule schedule : matrix.schedules(policy)) {
        const std::string row = matrix.row(policy, schedule, matrix.measured(policy, schedule));
        CAPTURE(row);
        CHECK(approved.contains(row));
        check_runs_as_predicted(matrix, policy, schedule, none);
      }
    }
  }
}

// There is no approved file for bfloat16, so measurements are compared with predictions on meta.
TEST_CASE(
    "in bfloat16 measured ops and bytes equal the prediction, and bits equal those without "
    "checkpointing") {
  std::vector<MatrixModel> models = matrix_models();
  for (std::size_t i = 0; i < models.size(); ++i) {
    models[i].dtype = "bfloat16";
    CAPTURE(models[i].preset);
    PolicyMatrix matrix(models[i]);
    const StepBits none = matrix.bits("none", Schedule::kOnDemand);
    for (const std::string& policy : policies_to_measure(i + 1, 2 * kSlice)) {
      for (const Schedule schedule : matrix.schedules(policy)) {
        check_runs_as_predicted(matrix, policy, schedule, none);
      }
    }
  }
}

}  // namespace
}  // namespace rematch::testing
