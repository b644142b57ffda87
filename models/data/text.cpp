#include "models/data/text.h"

#include <ATen/ops/empty.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "models/data/hash_noise.h"

// The assembler embeds the file, because C++20 has no #embed.
asm(".section .rodata\n"
    ".global rematch_shipped_text\n"
    "rematch_shipped_text:\n"
    ".incbin \"" REMATCH_TEXT_FILE
    "\"\n"
    ".global rematch_shipped_text_end\n"
    "rematch_shipped_text_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const char rematch_shipped_text[];
extern const char rematch_shipped_text_end[];
}

namespace rematch {
namespace {

class TextData final : public DataSource {
 public:
  TextData(const ModelSpec& spec, std::string text, std::uint64_t seed, at::Device device)
      : batch_(spec.at("batch")),
        tokens_(spec.at("tokens")),
        text_(std::move(text)),
        seed_(seed),
        device_(device) {
    const auto needed = static_cast<std::size_t>(tokens_) + 1;
    if (text_.size() < needed) {
      throw std::invalid_argument("data has " + std::to_string(text_.size()) + " bytes, but " +
                                  std::to_string(tokens_) + " tokens per sequence need at least " +
                                  std::to_string(needed) + "; give a longer file or fewer tokens");
    }
  }

  Batch batch(std::int64_t step) override {
    const auto options = at::TensorOptions().dtype(at::kLong);
    const std::int64_t count = batch_ * tokens_;
    if (device_.is_meta()) {
      return {{at::empty({count}, options.device(device_)),
               at::empty({count}, options.device(device_))}};
    }
    const at::Tensor inputs = at::empty({count}, options);
    const at::Tensor targets = at::empty({count}, options);
    fill(step, inputs.data_ptr<std::int64_t>(), targets.data_ptr<std::int64_t>());
    return {{inputs.to(device_), targets.to(device_)}};
  }

 private:
  void fill(std::int64_t step, std::int64_t* inputs, std::int64_t* targets) const {
    const std::uint64_t counter = stream_counter(seed_, "text", step);
    const std::uint64_t num_starts = text_.size() - static_cast<std::size_t>(tokens_);
    for (std::int64_t row = 0; row < batch_; ++row) {
      const std::uint64_t start =
          splitmix64(counter + static_cast<std::uint64_t>(row)) % num_starts;
      for (std::int64_t token = 0; token < tokens_; ++token) {
        const char* here = text_.data() + start + token;
        *inputs++ = static_cast<unsigned char>(here[0]);
        *targets++ = static_cast<unsigned char>(here[1]);
      }
    }
  }

  std::int64_t batch_;
  std::int64_t tokens_;
  std::string text_;
  std::uint64_t seed_;
  at::Device device_;
};

}  // namespace

std::string_view shipped_text() {
  return {rematch_shipped_text,
          static_cast<std::size_t>(rematch_shipped_text_end - rematch_shipped_text)};
}

std::string read_text(const std::string& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  if (stream) {
    // If `file` is a folder, the stream opens without an error, but the first read throws.
    try {
      text.assign(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    } catch (const std::exception&) {
      stream.setstate(std::ios::badbit);
    }
  }
  if (!stream && !stream.eof()) {
    throw std::invalid_argument("data file '" + file +
                                "' cannot be read: " + std::strerror(errno != 0 ? errno : EIO));
  }
  if (text.empty()) throw std::invalid_argument("data file '" + file + "' is empty");
  return text;
}

double unigram_byte_entropy(std::string_view text) {
  std::array<std::int64_t, 256> counts{};
  for (const char character : text) ++counts[static_cast<unsigned char>(character)];
  double entropy = 0.0;
  for (const std::int64_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(text.size());
    entropy -= share * std::log(share);
  }
  return entropy;
}

std::unique_ptr<DataSource> make_text_data(const ModelSpec& spec, std::string text,
                                           std::uint64_t seed, at::Device device) {
  return std::make_unique<TextData>(spec, std::move(text), seed, device);
}

}  // namespace rematch
