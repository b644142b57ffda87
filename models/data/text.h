// Training data for language models: windows of a text's bytes that start at hashed positions. The
// target of each byte is the next byte.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "models/model.h"

namespace rematch {

// Returns the contents of models/data/text.txt, which are embedded in the binary.
std::string_view shipped_text();

// Returns the file's bytes. Throws std::invalid_argument with a one-line message if the file is
// unreadable or empty.
std::string read_text(const std::string& file);

// Returns the cross-entropy of the best predictor that ignores context: the mean of -log p over the
// text's bytes, in nats. A model with a lower loss must have learnt from context.
double unigram_byte_entropy(std::string_view text);

// Batches for a language model: tokens and targets, int64 [batch * tokens]. Throws
// std::invalid_argument if `text` is shorter than one window.
std::unique_ptr<DataSource> make_text_data(const ModelSpec& spec, std::string text,
                                           std::uint64_t seed, at::Device device);

}  // namespace rematch
