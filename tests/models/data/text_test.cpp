#include "models/data/text.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/in_tree.h"

using namespace rematch;

namespace {

ModelSpec small_spec(std::int64_t batch, std::int64_t tokens) {
  return std::get<ModelSpec>(make_spec("llama_small", {{"batch", batch}, {"tokens", tokens}}));
}

std::vector<std::int64_t> values(const at::Tensor& tensor) {
  const auto* begin = tensor.data_ptr<std::int64_t>();
  return {begin, begin + tensor.numel()};
}

}  // namespace

TEST_CASE("the shipped text is a few hundred KiB of plain ASCII prose") {
  const std::string_view text = shipped_text();
  CHECK(text.size() > 300'000);
  CHECK(text.starts_with("In the beginning God created the heaven and the earth.\n"));
  CHECK(text.ends_with("throughout all their journeys.\n"));
  for (const char character : text) {
    if (character != '\n' && (character < ' ' || character > '~')) FAIL("not ASCII");
  }
  CHECK(read_text(testing::in_tree("models/data/text.txt")) == text);
}

// Two equally frequent bytes give an entropy of ln 2. One byte with share 1/2 and two bytes with
// share 1/4 give 1.5 ln 2.
TEST_CASE("unigram entropy is the entropy of the byte counts") {
  CHECK(unigram_byte_entropy("abab") == Approx(std::log(2.0)));
  CHECK(unigram_byte_entropy("aabc") == Approx(1.5 * std::log(2.0)));
  CHECK(unigram_byte_entropy("aaaa") == 0.0);
  CHECK(unigram_byte_entropy(shipped_text()) == Approx(3.0134).epsilon(1e-4));
}

TEST_CASE("windows are slices of the text, and targets are the next bytes") {
  std::string text;
  for (int i = 0; i < 256; ++i) text.push_back(static_cast<char>(i));  // byte i has value i
  const auto data = make_text_data(small_spec(3, 5), text, 7, at::kCPU);
  const Batch batch = data->batch(4);
  const auto inputs = values(batch.tensors.at(0));
  const auto targets = values(batch.tensors.at(1));
  REQUIRE(inputs.size() == 15);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    CHECK(targets[i] == inputs[i] + 1);
    if (i % 5 != 0) CHECK(inputs[i] == inputs[i - 1] + 1);
  }
}

TEST_CASE("a step's batch depends only on the seed and the step") {
  const std::string text(shipped_text().substr(0, 10'000));
  const ModelSpec spec = small_spec(2, 64);
  const auto data = make_text_data(spec, text, 1, at::kCPU);
  const auto again = make_text_data(spec, text, 1, at::kCPU);
  const auto other = make_text_data(spec, text, 2, at::kCPU);
  data->batch(0);
  CHECK(data->batch(3).tensors.at(0).equal(again->batch(3).tensors.at(0)));
  CHECK_FALSE(data->batch(3).tensors.at(0).equal(data->batch(4).tensors.at(0)));
  CHECK_FALSE(data->batch(3).tensors.at(0).equal(other->batch(3).tensors.at(0)));
  const Batch meta = make_text_data(spec, text, 1, at::kMeta)->batch(0);
  CHECK(meta.tensors.at(1).is_meta());
  CHECK(meta.tensors.at(1).sizes() == data->batch(0).tensors.at(1).sizes());
}

// A text of one window allows only one start position.
TEST_CASE("the shortest valid text has one byte more than a window, for the last target") {
  const Batch batch = make_text_data(small_spec(2, 3), "abcd", 1, at::kCPU)->batch(0);
  CHECK(values(batch.tensors.at(0)) == std::vector<std::int64_t>{97, 98, 99, 97, 98, 99});
  CHECK_THROWS_WITH(
      make_text_data(small_spec(2, 3), "abc", 1, at::kCPU),
      "data has 3 bytes, but 3 tokens per sequence need at least 4; give a longer file "
      "or fewer tokens");
}

TEST_CASE("the error for a missing, unreadable or empty file is one line with its path") {
  const ModelSpec spec = small_spec(1, 4);
  CHECK_THROWS_WITH(make_data(spec, "/no/such/file", 1, at::kCPU),
                    "data file '/no/such/file' cannot be read: No such file or directory");
  const std::string folder = std::filesystem::temp_directory_path();
  CHECK_THROWS_WITH(make_data(spec, folder, 1, at::kCPU),
                    "data file '" + folder + "' cannot be read: Is a directory");
  const std::string empty = folder + "/rematch_empty_text";
  std::ofstream(empty).close();
  CHECK_THROWS_AS(make_data(spec, empty, 1, at::kCPU), std::invalid_argument);
  CHECK_THROWS_WITH(make_data(spec, empty, 1, at::kCPU), "data file '" + empty + "' is empty");
  std::remove(empty.c_str());
}
