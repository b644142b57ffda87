// Recurrent cells, whole recurrent layers and scans, and states that persist from step to step.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

const Options kStates = {.buffers = {{kTokens, kDim}, {kTokens, kDim}}};

std::vector<Hazard> cells() {
  const auto cell_weights = [](std::int64_t gates) {
    const Shape matrix = {gates * kDim, kDim};
    const Shape bias = {gates * kDim};
    return std::vector<Shape>{matrix, matrix, bias, bias};
  };
  return {
      hazard("unrolled LSTM cells with weights that every step uses", cell_weights(4),
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor hidden = at::zeros_like(x);
               at::Tensor cell = at::zeros_like(x);
               for (int step = 0; step < 3; ++step) {
                 std::tie(hidden, cell) =
                     at::lstm_cell(x.roll(step, 0), {hidden, cell}, p[0], p[1], p[2], p[3]);
               }
               return hidden + cell;
             }),
      hazard("GRU cells unrolled", cell_weights(3),
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor hidden = x.sin();
               for (int step = 0; step < 3; ++step) {
                 hidden = at::gru_cell(x, hidden, p[0], p[1], p[2], p[3]);
               }
               return hidden;
             }),
      hazard("plain recurrent cells, tanh and relu", cell_weights(1),
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor hidden = at::rnn_tanh_cell(x, x.sin(), p[0], p[1], p[2], p[3]);
               return at::rnn_relu_cell(x, hidden, p[0], p[1], p[2], p[3]);
             }),
      hazard(
          "a recurrent state that is kept between steps and written in place", cell_weights(3),
          [](const at::Tensor& x, const Parts& p) {
            at::Tensor state = p.buffers[0];
            const at::Tensor hidden = at::gru_cell(x, state.clone(), p[0], p[1], p[2], p[3]);
            state.copy_(hidden.detach());
            return hidden;
          },
          kStates),
  };
}

std::vector<Hazard> layers() {
  const Options sequences = {.input = {3, 2, kDim}};
  const auto weights = [](std::int64_t gates, int directions) {
    std::vector<Shape> all;
    for (int i = 0; i < directions; ++i) {
      all.push_back({gates * kDim / directions, kDim});
      all.push_back({gates * kDim / directions, kDim / directions});
      all.push_back({gates * kDim / directions});
      all.push_back({gates * kDim / directions});
    }
    return all;
  };
  return {
      hazard(
          "an LSTM layer", weights(4, 1),
          [](const at::Tensor& x, const Parts& p) {
            const at::Tensor zero = at::zeros({1, 2, kDim});
            return std::get<0>(
                at::lstm(x, {zero, zero}, p.weights, true, 1, 0.0, true, false, false));
          },
          sequences),
      hazard(
          "a bidirectional GRU layer with dropout between layers", weights(3, 2),
          [](const at::Tensor& x, const Parts& p) {
            const at::Tensor zero = at::zeros({4, 2, kDim / 2});
            std::vector<at::Tensor> twice = p.weights;
            twice.insert(twice.end(), p.weights.begin(), p.weights.end());
            return std::get<0>(at::gru(x, zero, twice, true, 2, 0.3, true, true, false));
          },
          sequences),
      hazard(
          "a plain recurrent layer with the batch first", weights(1, 1),
          [](const at::Tensor& x, const Parts& p) {
            const at::Tensor zero = at::zeros({1, 3, kDim});
            return std::get<0>(at::rnn_tanh(x, zero, p.weights, true, 1, 0.0, true, false, true));
          },
          sequences),
  };
}

std::vector<Hazard> scans() {
  return {
      hazard("a selective scan that writes a state column by column", {{kDim, kDim}, {kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor decay = at::sigmoid(at::mm(x, p[0]));
               const at::Tensor value = at::mm(x, p[1]);
               at::Tensor state = at::zeros({kDim});
               std::vector<at::Tensor> states;
               for (std::int64_t t = 0; t < kTokens; ++t) {
                 state = state * decay[t] + value[t];
                 states.push_back(state);
               }
               return at::stack(states);
             }),
      hazard("linear attention with a running matrix", {{kDim, kDim}, {kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor key = at::softmax(at::mm(x, p[0]), 1);
               const at::Tensor value = at::mm(x, p[1]);
               at::Tensor memory = at::zeros({kDim, kDim});
               at::Tensor out = at::empty({kTokens, kDim});
               for (std::int64_t t = 0; t < kTokens; ++t) {
                 memory = memory + at::outer(key[t], value[t]);
                 out = out.index_copy(0, at::full({1}, t, at::TensorOptions(at::kLong)),
                                      at::mv(memory.t(), key[t]).unsqueeze(0));
               }
               return out;
             }),
      hazard("a fixed point, iterated until it converges", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor weight = p[0] * 0.2;
               at::Tensor state = at::zeros_like(x);
               for (int step = 0; step < 5; ++step) {
                 const at::Tensor next = at::tanh(at::mm(state, weight) + x);
                 const double moved = (next - state).abs().max().item<double>();
                 state = next;
                 if (moved < 1e-30) break;
               }
               return state;
             }),
  };
}

}  // namespace

std::vector<Hazard> recurrent_hazards() {
  std::vector<Hazard> all = cells();
  for (const auto& more : {layers(), scans()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace rematch::testing::hazards
