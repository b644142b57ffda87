// The CPU kernel. This file is compiled once for each instruction set.
#include "kernels/fused/adamw.h"

#include <cmath>

#include "kernels/op/lanes.h"

namespace rematch::kernels::REMATCH_CAPABILITY {
namespace {

// G is the gradient's type.
template <typename G>
void update(const AdamW& op, const AdamWTensor& tensor) {
  constexpr std::int64_t kElements = 16'384;  // for each thread, at least
  using L = WideLanes<G, c10::BFloat16>;
  using Wide = typename L::Wide;
  const double step = *tensor.step;
  const double correction1 = 1 - std::pow(static_cast<double>(op.beta1), step);
  const double correction2 = 1 - std::pow(static_cast<double>(op.beta2), step);
  const Wide kept(1 - op.learning_rate * op.weight_decay);
  const Wide pace1(1 - op.beta1);
  const Wide beta2(op.beta2);
  const Wide pace2(1 - op.beta2);
  const Wide step_size(static_cast<float>(op.learning_rate / correction1));
  const Wide scale(static_cast<float>(1 / std::sqrt(correction2)));
  const Wide epsilon(op.epsilon);
  at::parallel_for(0, tensor.size, kElements, [&](std::int64_t begin, std::int64_t end) {
    const G* gradient = static_cast<const G*>(tensor.gradient) + begin;
    float* value = tensor.value + begin;
    float* first = tensor.first_moment + begin;
    float* second = tensor.second_moment + begin;
    auto* parameter = static_cast<c10::BFloat16*>(tensor.parameter);
    L::for_each(end - begin, [&](std::int64_t i, int count) {
      const Wide grad = L::load(gradient + i, count);
      Wide moment = L::load(first + i, count);
      moment = at::vec::fmadd(grad - moment, pace1, moment);
      const Wide square = at::vec::fmadd(grad * pace2, grad, L::load(second + i, count) * beta2);
      const Wide size = at::vec::fmadd(square.sqrt(), scale, epsilon);
      const Wide result = L::load(value + i, count) * kept - step_size * moment / size;
      L::store(moment, first + i, count);
      L::store(square, second + i, count);
      L::store(result, value + i, count);
      if (parameter != nullptr) L::store(result, parameter + begin + i, count);
    });
  });
}

}  // namespace

void run(const AdamW& op) {
  for (int i = 0; i < op.num; ++i) {
    if (op.gradient_element == Element::kFloat32) {
      update<float>(op, op.tensors[i]);
    } else {
      update<c10::BFloat16>(op, op.tensors[i]);
    }
  }
}

}  // namespace rematch::kernels::REMATCH_CAPABILITY
