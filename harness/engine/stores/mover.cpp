#include "harness/engine/stores/mover.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "harness/engine/recording.h"

namespace rematch {
namespace {

constexpr std::size_t kAlignment = 64;  // size of a cache line

// Copies synchronously, so there is nothing to wait for and marks are null.
class CpuMover final : public Mover {
 public:
  void* allocate(std::size_t bytes) override {
    void* block =
        std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  void free(void* block) noexcept override { std::free(block); }
  void copy_out(void* host, const void* device, std::size_t bytes) override {
    copy(host, device, bytes);
  }
  void copy_back(void* device, const void* host, std::size_t bytes) override {
    copy(device, host, bytes);
  }
  Mark mark() override { return nullptr; }
  void wait(const Mark& /*mark*/) override {}

 private:
  void copy(void* to, const void* from, std::size_t bytes) {
    tell(Move::kCopy, c10::Stream(c10::Stream::DEFAULT, c10::Device(c10::DeviceType::CPU)),
         [&] { std::memcpy(to, from, bytes); });
  }
};

class MetaMover final : public Mover {
 public:
  void* allocate(std::size_t /*bytes*/) override { return this; }
  void free(void* /*block*/) noexcept override {}
  void copy_out(void* /*host*/, const void* /*device*/, std::size_t /*bytes*/) override {}
  void copy_back(void* /*device*/, const void* /*host*/, std::size_t /*bytes*/) override {}
  Mark mark() override { return nullptr; }
  void wait(const Mark& /*mark*/) override {}
};

}  // namespace

std::unique_ptr<Mover> make_mover(c10::Device device) {
  if (device.is_cpu()) return std::make_unique<CpuMover>();
  if (device.is_meta()) return std::make_unique<MetaMover>();
  if (device.is_cuda() && make_cuda_mover != nullptr) return make_cuda_mover(device);
  throw Refused("the plan offloads tensors, but this build cannot move tensors between " +
                device.str() +
                " and the host; build with preset cuda, or use a plan that keeps these tensors on "
                "the device");
}

}  // namespace rematch
