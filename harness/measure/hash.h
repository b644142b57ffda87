// Fingerprints of tensor contents: the first 128 bits of SHA-256 over the elements' bytes in
// row-major order, in hex. Equal fingerprints mean equal bits. In Python:
// hashlib.sha256(t.contiguous().numpy().tobytes()).hexdigest()[:32].
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rematch {

// Returns the hash of one tensor on any device except meta, or "" for an undefined tensor.
std::string tensor_hash(const at::Tensor& tensor);

// Returns the hash of each tensor. Hashes as many tensors at a time as LibTorch has threads.
std::vector<std::string> tensor_hashes(const std::vector<at::Tensor>& tensors);

// Returns the hash of the concatenated bytes of the tensors. Undefined tensors add nothing.
std::string tensors_hash(const std::vector<at::Tensor>& tensors);

// Hashes the state of the default random generator for `device`'s type.
std::string generator_hash(at::Device device);

// Returns the bits of a float or double as text, such as "0x3f800000" or "0x7ff8000000000000".
std::string bits_of(float value);
std::string bits_of(double value);

}  // namespace rematch
