#include "harness/run/children/stage_link.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include "harness/ranks/place.h"
#include "models/preset/parallel.h"

namespace rematch {
namespace {

constexpr const char* kGroup = "pp";

c10::intrusive_ptr<c10d::Backend> backend() {
  return c10d::resolve_process_group(kGroup)->getBackend(c10::DeviceType::CPU);
}

int tag_of(StageLink::Way way, std::int64_t micro_batch) {
  return static_cast<int>(2 * micro_batch + (way == StageLink::Way::kBackward ? 1 : 0));
}

[[noreturn]] void lost(int stage, int neighbour, const std::exception& error) {
  throw RanksError("stage " + std::to_string(stage) + " lost stage " + std::to_string(neighbour) +
                   " of the pipeline: its rank has ended or hangs (" + error.what() + ")");
}

}  // namespace

struct RankStageLink::Sent {
  std::vector<char> bytes;
  c10::intrusive_ptr<c10d::Work> work;
  int to = 0;
};

RankStageLink::RankStageLink(const ModelSpec& spec)
    : position_(static_cast<int>(rank_axis(spec, kGroup).position)),
      max_sent_(static_cast<std::size_t>(2 * num_stages(spec.dimensions))) {}

RankStageLink::~RankStageLink() = default;

void RankStageLink::send(const at::Tensor& tensor, Way way, std::int64_t micro_batch) {
  if (!tensor.is_cpu()) {
    throw std::invalid_argument("stages of a pipeline run on the cpu only, not on " +
                                tensor.device().str());
  }
  // In 1F1B a neighbour is at most as many micro-batches behind as there are stages. So the oldest
  // tensors have arrived, and waiting for them cannot block forever.
  while (sent_.size() >= max_sent_) wait_for_oldest();
  const c10::impl::ExcludeDispatchKeyGuard unseen(c10::DispatchKey::Fake);
  const at::NoGradGuard no_grad;
  const at::Tensor whole = tensor.detach().contiguous();
  auto sent = std::make_unique<Sent>();
  sent->to = position_ + (way == Way::kForward ? 1 : -1);
  sent->bytes.resize(whole.nbytes());
  std::memcpy(sent->bytes.data(), whole.const_data_ptr(), whole.nbytes());
  std::vector<at::Tensor> tensors = {
      at::from_blob(sent->bytes.data(), whole.sizes(), whole.options())};
  sent->work = backend()->send(tensors, sent->to, tag_of(way, micro_batch));
  sent_.push_back(std::move(sent));
}

void RankStageLink::receive(at::Tensor& tensor, Way way, std::int64_t micro_batch) {
  const int from = position_ + (way == Way::kForward ? -1 : 1);
  const c10::impl::ExcludeDispatchKeyGuard unseen(c10::DispatchKey::Fake);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors = {tensor.detach()};
  try {
    backend()->recv(tensors, from, tag_of(way, micro_batch))->wait();
  } catch (const std::exception& error) {
    lost(position_, from, error);
  }
}

void RankStageLink::finish_step() {
  while (!sent_.empty()) wait_for_oldest();
}

void RankStageLink::wait_for_oldest() {
  try {
    sent_.front()->work->wait();
  } catch (const std::exception& error) {
    lost(position_, sent_.front()->to, error);
  }
  sent_.pop_front();
}

}  // namespace rematch
