"""Runs steps of a Llama on request, for `scripts/compare_with_pytorch --package`. The steps run without checkpointing,
or with package rematch, torch.utils.checkpoint or torch_remat.

    package_server.py [--count] MODEL THREADS "" ARM

package_model.py defines the MODELs and package_arms.py the ARMs. The empty argument makes the order of arguments the
same as in step_server.py. The server also answers the requests of step_server.py and two more:

- `peak 0` returns the peak bytes of a step, minus the bytes held before the step.
- `bits 0` returns a digest of the loss and the gradients of a step.

With --count the server answers only `ops` and `peak`, because counting allocations would distort times. Times are CPU
time of the process."""

import gc
import hashlib
import json
import sys
import time

import package_arms
import package_model
import torch

WARM_UP_STEPS = 3


class Arm:
    """Runs steps of the model, checkpointed as the arm specifies."""

    def __init__(self, model_name, arm):
        self.model, self.ids = package_model.make(model_name)
        self.recording = package_arms.use(self.model, self.ids, arm)

    def loss(self):
        if self.recording is None:
            return self.model(self.ids)
        with self.recording():
            return self.model(self.ids)

    def step(self):
        self.loss().backward()
        self.model.zero_grad(set_to_none=True)

    def bits(self):
        """Returns a digest of the loss and the gradients of a step with a fixed random seed."""
        torch.manual_seed(1)
        loss = self.loss()
        loss.backward()
        digest = hashlib.sha256()
        for tensor in (loss.detach(), *(parameter.grad for parameter in self.model.parameters())):
            digest.update(tensor.numpy().tobytes())
        self.model.zero_grad(set_to_none=True)
        return digest.hexdigest()

    def nanoseconds(self, num_steps):
        start = time.process_time_ns()
        for _ in range(num_steps):
            self.step()
        return time.process_time_ns() - start

    def counted(self):
        import rematch

        gc.collect()
        gc.disable()  # garbage collection would free the tensors in reference cycles at an arbitrary time
        try:
            with rematch.watch() as figures:
                self.step()
        finally:
            gc.enable()
        return figures


def main():
    arguments = sys.argv[1:]
    is_counting = arguments[0] == "--count"
    if is_counting:
        import rematch

        rematch.count_memory()
    model, threads, _, arm_name = arguments[1:] if is_counting else arguments
    torch.set_num_threads(int(threads))
    arm = Arm(model, arm_name)
    for _ in range(WARM_UP_STEPS):
        arm.step()
    for line in sys.stdin:
        request, _, *rest = line.split()
        if request == "time":
            print(arm.nanoseconds(int(rest[0])), flush=True)
            continue
        if request == "bits":
            print(arm.bits(), flush=True)
            continue
        figures = arm.counted()
        if request == "ops":
            print(json.dumps({phase: sum(ops.values()) for phase, ops in figures["ops"].items()}), flush=True)
        else:
            print(max(figures["peak_bytes"].values()) - figures["before_bytes"], flush=True)


if __name__ == "__main__":
    main()
