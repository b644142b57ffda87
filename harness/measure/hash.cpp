#include "harness/measure/hash.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Generator.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <future>
#include <iomanip>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>

namespace rematch {
namespace {

constexpr std::size_t kKeptBytes = 16;

// Returns the elements in row-major order, on the host. Returns an undefined tensor for an
// undefined tensor.
at::Tensor on_host(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().to(at::kCPU).contiguous() : tensor;
}

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
      throw std::runtime_error("OpenSSL cannot start a SHA-256 digest");
    }
  }

  // `host` must come from on_host().
  void add(const at::Tensor& host) {
    if (!host.defined() || host.numel() == 0) return;
    if (EVP_DigestUpdate(context_.get(), host.const_data_ptr(), host.nbytes()) != 1) {
      throw std::runtime_error("OpenSSL cannot update a SHA-256 digest");
    }
  }

  std::string finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    if (EVP_DigestFinal_ex(context_.get(), digest.data(), &size) != 1) {
      throw std::runtime_error("OpenSSL cannot finish a SHA-256 digest");
    }
    std::string text;
    for (std::size_t index = 0; index < kKeptBytes; ++index) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      text += kDigits[digest[index] >> 4];
      text += kDigits[digest[index] & 15];
    }
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

template <typename Word>
std::string hex_word(Word word) {
  std::ostringstream text;
  text << "0x" << std::hex << std::setfill('0') << std::setw(2 * sizeof(Word)) << word;
  return text.str();
}

}  // namespace

std::string tensor_hash(const at::Tensor& tensor) {
  if (!tensor.defined()) return "";
  Sha256 sha;
  sha.add(on_host(tensor));
  return sha.finish();
}

std::vector<std::string> tensor_hashes(const std::vector<at::Tensor>& tensors) {
  std::vector<std::string> hashes(tensors.size());
  std::atomic<std::size_t> next{0};
  const auto take_turns = [&] {
    for (std::size_t i = next++; i < tensors.size(); i = next++)
      hashes[i] = tensor_hash(tensors[i]);
  };
  std::vector<std::future<void>> others;
  const auto num_threads = static_cast<std::size_t>(at::get_num_threads());
  for (std::size_t thread = 1; thread < std::min(num_threads, tensors.size()); ++thread) {
    others.push_back(std::async(std::launch::async, take_turns));
  }
  take_turns();
  for (std::future<void>& other : others) other.get();
  return hashes;
}

// SHA-256 is sequential. While one tensor is hashed, only the copy of the next tensor can run in
// parallel.
std::string tensors_hash(const std::vector<at::Tensor>& tensors) {
  const auto start_copy = [&tensors](std::size_t index) {
    const bool is_copied =
        index < tensors.size() && tensors[index].defined() && !tensors[index].is_cpu();
    const auto policy = is_copied ? std::launch::async : std::launch::deferred;
    return std::async(policy, [&tensors, index] {
      return index < tensors.size() ? on_host(tensors[index]) : at::Tensor();
    });
  };
  Sha256 sha;
  std::future<at::Tensor> next = start_copy(0);
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    const at::Tensor host = next.get();
    next = start_copy(index + 1);
    sha.add(host);
  }
  return sha.finish();
}

std::string generator_hash(at::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  at::Tensor state;
  {
    const std::lock_guard lock(generator.mutex());
    state = generator.get_state();
  }
  return tensor_hash(state);
}

std::string bits_of(float value) { return hex_word(std::bit_cast<std::uint32_t>(value)); }
std::string bits_of(double value) { return hex_word(std::bit_cast<std::uint64_t>(value)); }

}  // namespace rematch
