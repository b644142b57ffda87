// Calls every variant of every collective in c10d, on one backend of two ranks. Also reads how many
// collectives a rank has started, as reported to its launcher (harness/ranks/notes.h).
#pragma once

#include <ATen/Functions.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/ranks/notes.h"

namespace rematch::testing {

// Acts as the launcher of one rank in this process, and reads what the rank reports about its
// progress.
class NotesOnBoard {
 public:
  NotesOnBoard() : board_(1) {
    std::string variable = board_.variable(0);
    const std::size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
    of_rank = std::make_shared<RankNotes>();
    unsetenv(variable.substr(0, equals).c_str());
  }
  std::int64_t calls() const { return board_.read(0).calls; }

  std::shared_ptr<RankNotes> of_rank;

 private:
  RankBoard board_;
};

using NamedCall = std::pair<std::string, std::function<void(c10d::Backend&)>>;

inline std::vector<NamedCall> every_collective(const at::TensorOptions& options) {
  using Tensors = std::vector<at::Tensor>;
  const auto some = [options] { return at::ones({4}, options); };
  const auto twice = [options] { return at::ones({8}, options); };
  return {
      {"broadcast",
       [=](c10d::Backend& backend) {
         Tensors tensors = {some()};
         backend.broadcast(tensors);
       }},
      {"allreduce",
       [=](c10d::Backend& backend) {
         Tensors tensors = {some()};
         backend.allreduce(tensors);
       }},
      {"allreduce_coalesced",
       [=](c10d::Backend& backend) {
         Tensors tensors = {some(), some()};
         backend.allreduce_coalesced(tensors);
       }},
      {"reduce",
       [=](c10d::Backend& backend) {
         Tensors tensors = {some()};
         backend.reduce(tensors);
       }},
      {"allgather",
       [=](c10d::Backend& backend) {
         std::vector<Tensors> outputs = {{some(), some()}};
         Tensors inputs = {some()};
         backend.allgather(outputs, inputs);
       }},
      {"_allgather_base",
       [=](c10d::Backend& backend) {
         at::Tensor output = twice();
         at::Tensor input = some();
         backend._allgather_base(output, input);
       }},
      {"allgather_into_tensor_coalesced",
       [=](c10d::Backend& backend) {
         Tensors outputs = {twice(), twice()};
         Tensors inputs = {some(), some()};
         backend.allgather_into_tensor_coalesced(outputs, inputs);
       }},
      {"gather",
       [=](c10d::Backend& backend) {
         std::vector<Tensors> outputs = {{some(), some()}};
         Tensors inputs = {some()};
         c10d::GatherOptions to_first;
         to_first.rootRank = 0;
         backend.gather(outputs, inputs, to_first);
       }},
      {"scatter",
       [=](c10d::Backend& backend) {
         Tensors outputs = {some()};
         std::vector<Tensors> inputs = {{some(), some()}};
         c10d::ScatterOptions from_first;
         from_first.rootRank = 0;
         backend.scatter(outputs, inputs, from_first);
       }},
      {"reduce_scatter",
       [=](c10d::Backend& backend) {
         Tensors outputs = {some()};
         std::vector<Tensors> inputs = {{some(), some()}};
         backend.reduce_scatter(outputs, inputs);
       }},
      {"_reduce_scatter_base",
       [=](c10d::Backend& backend) {
         at::Tensor output = some();
         at::Tensor input = twice();
         backend._reduce_scatter_base(output, input);
       }},
      {"reduce_scatter_tensor_coalesced",
       [=](c10d::Backend& backend) {
         Tensors outputs = {some(), some()};
         Tensors inputs = {twice(), twice()};
         backend.reduce_scatter_tensor_coalesced(outputs, inputs);
       }},
      {"alltoall_base",
       [=](c10d::Backend& backend) {
         at::Tensor output = twice();
         at::Tensor input = twice();
         std::vector<std::int64_t> splits;
         backend.alltoall_base(output, input, splits, splits);
       }},
      {"alltoall",
       [=](c10d::Backend& backend) {
         Tensors outputs = {some(), some()};
         Tensors inputs = {some(), some()};
         backend.alltoall(outputs, inputs);
       }},
      {"barrier", [](c10d::Backend& backend) { backend.barrier(); }},
  };
}

}  // namespace rematch::testing
