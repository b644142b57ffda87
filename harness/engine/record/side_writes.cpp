#include "harness/engine/record/side_writes.h"

#include <algorithm>

namespace rematch {

// Found by calling every op of LibTorch 2.11 that has a CPU kernel and comparing its arguments'
// bytes, and by reading the schemas of the others for arguments that outlive a call. Those that a
// schema marks are listed where that spares keeping the results.
const std::vector<SideWrites>& all_side_writes() {
  static const auto* all = new std::vector<SideWrites>{
      {"aten::native_batch_norm", {"running_mean", "running_var"}, "training"},
      {"aten::cudnn_batch_norm", {"running_mean", "running_var"}, "training"},
      {"aten::miopen_batch_norm", {"running_mean", "running_var"}, "training"},
      {"aten::_native_batch_norm_legit", {"running_mean", "running_var"}, "training"},
      {"aten::_batch_norm_with_update", {"running_mean", "running_var"}, ""},
      {"aten::batch_norm_update_stats", {"running_mean", "running_var"}, ""},
      {"aten::batch_norm_gather_stats", {"running_mean", "running_var"}, ""},
      {"aten::batch_norm_gather_stats_with_counts", {"running_mean", "running_var"}, ""},
      {"aten::rrelu_with_noise", {"noise"}, ""},
      {"aten::rrelu_with_noise_", {"noise"}, ""},
      {"aten::_cudnn_rnn", {"dropout_state"}, "train", /*feeds_results=*/true},
      {"aten::miopen_rnn", {"dropout_state"}, "train", /*feeds_results=*/true},
      {"onednn::qconv2d_pointwise", {"qaccum"}, "", /*feeds_results=*/true},
      {"onednn::qlinear_pointwise", {"other"}, "", /*feeds_results=*/true},
  };
  return *all;
}

const SideWrites* side_writes_of(std::string_view op) {
  const auto& all = all_side_writes();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const SideWrites& writes) { return writes.op == op; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace rematch
