"""A model with hidden effects: an autograd function and an op that write without telling torch, and an op that cannot
be repeated. hidden_effects_test.py imports it in several processes."""

import ctypes

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402

NUM_LAYERS = 3


def scale_unseen(x, factor):
    """Scales float32 numbers in memory, like a kernel of a library. Neither torch nor Python sees the writes."""
    address = torch._C._to_dlpack(x)
    capsule = ctypes.pythonapi.PyCapsule_GetPointer
    capsule.restype, capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    data = ctypes.c_void_p.from_address(capsule(address, b"dltensor")).value
    numbers = (ctypes.c_float * x.numel()).from_address(data)
    for index in range(x.numel()):
        numbers[index] *= factor


class Rotary(torch.autograd.Function):
    """Scales its second argument in place without telling torch."""

    @staticmethod
    def forward(_, weight, x):
        scale_unseen(x.detach(), 0.5)
        return x.view_as(x)

    @staticmethod
    def backward(_, gradient):
        return None, gradient * 0.5


rotary = Rotary.apply  # libraries also store the function `apply` in a variable


@torch.library.custom_op("rematch_hidden::scale", mutates_args=())
def scale(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Also writes to y, although its schema does not say so."""
    scale_unseen(y, 0.5)
    return x * y


class Calls:
    """The hidden state of the op `counted` is its number of calls."""

    number = 0


@torch.library.custom_op("rematch_hidden::counted", mutates_args=())
def counted(x: torch.Tensor) -> torch.Tensor:
    Calls.number += 1
    return x * (1 + 0.1 * Calls.number)


counted.register_autograd(lambda _, gradient: gradient)


class Layer(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.up, self.down = torch.nn.Linear(dim, 2 * dim), torch.nn.Linear(2 * dim, dim)
        self.register_buffer("table", torch.ones(2 * dim))

    def forward(self, x):
        h = self.up(x)
        q = h * 2
        before = q.cos()
        h = rotary(self.up.bias, q).sin() * before * q.exp()
        h = h * scale(h.detach(), self.table).cos()
        return x + self.down(counted(h.tanh()))


class Model(torch.nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer(dim) for _ in range(NUM_LAYERS))

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x if mask is None else x.masked_fill(mask, 0.0))
        return x.square().mean()


torch.manual_seed(0)
MODEL = Model()
X = torch.randn(4, 8)
MASK = X > 1


def step(mask=None):
    """Runs forward on a fixed batch and returns the loss."""
    Calls.number = 0
    for table in MODEL.buffers():
        table.fill_(1)
    return MODEL(X, mask)


def trained(checkpoint=None, mask=None):
    """Returns the loss and the gradients of a step."""
    MODEL.zero_grad()
    if checkpoint is None:
        loss = step(mask)
    else:
        with rematch.scopes(MODEL, checkpoint), rematch.recording(checkpoint):
            loss = step(mask)
    loss.backward()
    return [loss.detach().clone(), *(parameter.grad.clone() for parameter in MODEL.parameters())]


def differences(plan, mask=None):
    """Returns the schedules under which the plan changes the results of a step."""
    expected = trained(mask=mask)
    found = {schedule: trained(rematch.Checkpoint(plan, schedule), mask) for schedule in ("whole_region", "on_demand")}
    return [schedule for schedule, tensors in found.items() if not all(map(torch.equal, tensors, expected))]
