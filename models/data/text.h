// A text's bytes as training data: windows that start at hashed places; the target is the next
// byte.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "models/model.h"

namespace rematch {

// models/data/text.txt, embedded in the binary.
std::string_view shipped_text();

// Returns the file's bytes. Throws std::invalid_argument, one line, if it is unreadable or empty.
std::string read_text(const std::string& file);

// Mean of -log p over the text's bytes, in nats: the cross-entropy of the best predictor that
// ignores context. A model that ends below this value has learnt from context.
double unigram_byte_entropy(std::string_view text);

// Batches for a language model: tokens and targets, int64 [batch * tokens]. Throws
// std::invalid_argument if `text` is shorter than one window.
std::unique_ptr<DataSource> make_text_data(const ModelSpec& spec, std::string text,
                                           std::uint64_t seed, at::Device device);

}  // namespace rematch
