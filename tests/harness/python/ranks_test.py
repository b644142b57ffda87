"""Tests layers that are replicated, sharded or split over two ranks. Loss and gradients must be bit-identical to those
without a plan, and no memory may leak."""

import contextlib
import gc
import itertools
import os
import re
import socket
import unittest
import warnings

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
import torch.multiprocessing  # noqa: E402
from beside_torch import checkpointed_by_torch, kept_bytes  # noqa: E402
from rematch.selftest import Model  # noqa: E402

NUM_RANKS = 2
NUM_LEAK_STEPS = 20
# Number of steps whose peaks are measured. The lowest peak counts, because Gloo's threads free tensors at arbitrary
# times.
NUM_PEAKS = 5
SCHEDULES = ("whole_region", "on_demand")
PEAK_TOLERANCE = 1e-4
# Bytes that Gloo's two threads may still hold after sending or receiving tensors, in the traced step and in the
# measured step.
MOST_HELD_BY_GLOO = 2 * 2 * 64 * 32 * 4
LEAST_SAVING = 0.9  # the peak must be lower than this fraction of the peak without checkpointing


def replicated(model):
    return torch.nn.parallel.DistributedDataParallel(model)


def sharded(model, **options):
    from torch.distributed.fsdp import fully_shard

    for layer in model.layers:
        fully_shard(layer, **options)
    return fully_shard(model, **options)


def sharded_in_bfloat16(model):
    from torch.distributed.fsdp import MixedPrecisionPolicy

    return sharded(model, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))


def sharded_and_never_freed(model):
    return sharded(model, reshard_after_forward=False)


def split(model):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (NUM_RANKS,), mesh_dim_names=("tensor",))
    for layer in model.layers:
        layer.feed_forward[2].p = 0.0  # no dropout, because each rank would draw a different mask
        parallelize_module(layer, mesh, {"feed_forward.0": ColwiseParallel(), "feed_forward.3": RowwiseParallel()})
    return model


def split_with_sequence(model):
    """Splits layers with sequence parallelism. Norms run on each rank's own tokens. Linear layers gather the tokens
    before they run, and scatter them afterwards."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

    mesh = init_device_mesh("cpu", (NUM_RANKS,), mesh_dim_names=("tensor",))
    for layer in model.layers:
        layer.feed_forward[2].p = 0.0
        parallelize_module(layer, mesh, {
            "norm": SequenceParallel(sequence_dim=0), "feed_forward.0": ColwiseParallel(input_layouts=Shard(0)),
            "feed_forward.3": RowwiseParallel(output_layouts=Shard(0))})
    return model


TENSOR_PARALLEL = (split, split_with_sequence)
FULLY_SHARDED = (sharded, sharded_in_bfloat16, sharded_and_never_freed)


def bits_of(model, loss):
    local = [p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad for p in model.parameters()]
    return [loss.detach().clone(), *(gradient.clone() for gradient in local)]


def assert_auto_is_refused(model, x):
    try:
        rematch.auto(model, lambda: model(x), budget="1GiB")
    except rematch.RematchError as error:
        assert "is a DTensor: each rank would choose its own plan" in str(error), error
    else:
        raise AssertionError("auto chose a plan on each rank")


def assert_tracing_warns_of_sharding(model, x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rematch.trace(model, lambda: model(x))
    assert any("under fully_shard" in str(warning.message) for warning in caught), caught


def compare_bytes(model, x, trace, plan):
    """Checks that the peak under each schedule equals the predicted peak, and is lower than without checkpointing."""
    for schedule in SCHEDULES:
        predicted = rematch.predict(trace, plan, schedule)
        found = rematch.check(model, lambda: model(x), rematch.Checkpoint(plan, schedule))
        peak, plain = found["checkpointed"]["peak_bytes"], found["plain"]["peak_bytes"]
        assert found["bits_equal"], schedule
        assert found["checkpointed"]["executed_ops"]["recompute"] == predicted["recomputed_ops"], schedule
        expected = predicted["peak_bytes"] - predicted["before_bytes"]
        assert abs(peak - expected) <= PEAK_TOLERANCE * expected + MOST_HELD_BY_GLOO, (schedule, peak, expected)
        assert peak < LEAST_SAVING * plain, (schedule, peak, plain)


def recompute_collectives(plan):
    """Changes the plan so that it recomputes collectives, which named policies would keep."""
    for region_type in plan["types"]:
        for op in region_type["ops"]:
            if op["name"].startswith("_c10d_functional::"):
                op["treatment"] = "recompute"


def held_after(num_steps, model, step):
    for _ in range(num_steps):
        model.zero_grad(set_to_none=True)
        step()
    model.zero_grad(set_to_none=True)
    gc.collect()
    return rematch.allocated_bytes()


def compare_on_one_rank(rank, distribute, policy):
    torch.manual_seed(0)
    model = Model()
    x = torch.randn(64, 32) + (0 if distribute in TENSOR_PARALLEL else rank)
    # Replicated and sharded layers run the same ops as the plain model, but split layers do not.
    if distribute in TENSOR_PARALLEL:
        model = distribute(model)
        trace = rematch.trace(model, lambda: model(x))
        plan = rematch.resolve(trace, policy)
        assert_auto_is_refused(model, x)
    else:
        plan = rematch.resolve(rematch.trace(model, lambda: model(x)), policy)
        model = distribute(model)
        if distribute in FULLY_SHARDED:
            assert_tracing_warns_of_sharding(model, x)
    has_collectives = distribute is split_with_sequence or (distribute is split and policy == "segments(2)")
    if has_collectives:
        recompute_collectives(plan)
    compare_steps(model, x, plan, has_collectives)
    if distribute in TENSOR_PARALLEL:
        compare_bytes(model, x, trace, plan)
    elif policy in ("full", "save_mm"):
        compare_with_torch(model, x, plan)


def compare_with_torch(model, x, plan):
    """Checks that each schedule needs no more bytes than torch.utils.checkpoint, plus the bytes that the plan keeps."""
    def rise(around):
        peaks = []
        for _ in range(NUM_PEAKS):
            model.zero_grad(set_to_none=True)
            gc.collect()
            with rematch.watch(model) as figures:
                with around():
                    loss = model(x)
                loss.backward()
                del loss
            peaks.append(max(figures["peak_bytes"].values()) - figures["before_bytes"])
        return min(peaks)

    layers = [layer for modules in rematch.find_blocks(model).values() for layer in modules]
    with checkpointed_by_torch(layers, draws=True):
        limit = rise(contextlib.nullcontext)
    for schedule in SCHEDULES:
        checkpoint = rematch.Checkpoint(plan, schedule)
        with rematch.scopes(model, checkpoint):
            peak = rise(lambda checkpoint=checkpoint: rematch.recording(checkpoint))
        kept = kept_bytes(checkpoint, checkpoint.report()) // NUM_PEAKS
        assert peak <= limit + kept, (schedule, peak, limit, kept)


def assert_refused_before_the_step(rank, distribute, policy):
    """Tests a model that fully_shard splits into several units. The model gets its scopes either before or after it is
    sharded."""
    x = torch.randn(64, 32) + rank
    traced = Model()
    plan = rematch.resolve(rematch.trace(traced, lambda: traced(x)), policy)
    for prepare in (lambda: rematch.apply(distribute(Model()), plan), lambda: distribute(rematch.apply(Model(), plan))):
        model = prepare()
        called = []
        model.layers[0].register_forward_pre_hook(lambda *_, called=called: called.append(True))
        try:
            model(x)
        except rematch.Refused as error:
            assert re.match(r"region layers.0..layers.1 spans several units of fully_shard, [^\n]*$", str(error)), error
        else:
            raise AssertionError("regions in several units were not refused")
        assert not called
        rematch.remove(model)
        model(x).backward()


def compare_steps(model, x, plan, recomputes_collectives):
    def step(schedule):
        torch.manual_seed(1)
        if schedule is None:
            loss = model(x)
        else:
            with rematch.scopes(model), rematch.recording(rematch.Checkpoint(plan, schedule)):
                loss = model(x)
        with rematch.watch() as figures:
            loss.backward()
        recomputed = sum(figures["ops"]["recompute"].values())
        assert (recomputed > 0) == (schedule is not None), (schedule, recomputed)
        collectives = sum(count for name, count in figures["ops"]["recompute"].items()
                          if name.startswith("_c10d_functional::") and not name.endswith("wait_tensor"))
        assert (collectives > 0) == (recomputes_collectives and schedule is not None), (schedule, figures["ops"]["recompute"])
        return loss

    expected = bits_of(model, step(None))
    for schedule in SCHEDULES:
        model.zero_grad(set_to_none=True)
        found = bits_of(model, step(schedule))
        assert all(torch.equal(want, have) for want, have in zip(expected, found, strict=True)), schedule
        after_two, after_all = held_after(2, model, lambda: step(schedule)), held_after(
            NUM_LEAK_STEPS, model, lambda: step(schedule))
        assert after_two == after_all, (schedule, after_two, after_all)


def leave_the_plan_on_one_rank(rank, distribute, policy):
    """Each layer runs an additional op on the last rank only, as with a padded batch. The collectives of both ranks
    must still match."""
    torch.manual_seed(0)
    model = distribute(Model())
    x = torch.randn(64, 32)
    plan = rematch.resolve(rematch.trace(model, lambda: model(x)), policy)
    recompute_collectives(plan)
    is_padded = rank == NUM_RANKS - 1
    if is_padded:
        for layer in model.layers:
            layer.norm.register_forward_hook(lambda module, arguments, result: result.sigmoid() * 1.5)

    def step(checkpoint):
        model.zero_grad(set_to_none=True)
        torch.manual_seed(1)
        with rematch.recording(checkpoint) if checkpoint else warnings.catch_warnings():
            loss = model(x)
        loss.backward()
        return bits_of(model, loss)

    expected = step(None)
    for schedule in SCHEDULES:
        checkpoint = rematch.Checkpoint(plan, schedule)
        with rematch.scopes(model, checkpoint), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = step(checkpoint)
        assert all(torch.equal(want, have) for want, have in zip(expected, found, strict=True)), schedule
        left = sum(row["left"] for row in checkpoint.report())
        assert (left > 0) == is_padded, (schedule, checkpoint.report())


def apply_on_one_rank(rank, distribute, policy):
    """Tests rematch.apply before and after a model is wrapped or sharded."""
    x = torch.randn(64, 32, generator=torch.Generator().manual_seed(rank))
    traced = Model()
    plan = rematch.resolve(rematch.trace(traced, lambda: traced(x)), policy)

    def run(prepare):
        torch.manual_seed(0)
        model = prepare(Model())
        torch.manual_seed(1)
        with rematch.watch() as figures:
            for _ in range(3):  # gradients are accumulated over these passes
                loss = model(x)
                loss.backward()
        return bits_of(model, loss), sum(figures["ops"]["recompute"].values())

    expected, none = run(distribute)
    assert none == 0, none
    counts = []
    for schedule in SCHEDULES:
        checkpoint = rematch.Checkpoint(plan, schedule)
        for prepare in (lambda model, checkpoint=checkpoint: distribute(rematch.apply(model, checkpoint)),
                        lambda model, checkpoint=checkpoint: rematch.apply(distribute(model), checkpoint)):
            found, count = run(prepare)
            assert all(torch.equal(want, have) for want, have in zip(expected, found, strict=True)), schedule
            counts.append(count)
    assert len(set(counts)) == 1 and counts[0] > 0, counts


def accumulate_on_one_rank(rank, distribute, policy):
    """Tests auto(accumulate=N) with a model that is sharded afterwards. Ranks reduce gradients after the last micro-batch."""
    torch.manual_seed(0)
    model = Model()
    batches = [torch.randn(64, 32, generator=torch.Generator().manual_seed(3 * rank + index)) for index in range(3)]

    def loss_of(x):
        return model(x) / len(batches)

    settings = {"device": "h100", "optimizer": "none", "accumulate": len(batches)}
    front = rematch.search(rematch.trace(model, lambda: loss_of(batches[0])), **settings)
    budget = front["points"][0]["predicted_peak_allocated_bytes"]
    checkpoint = rematch.auto(model, lambda: loss_of(batches[0]), budget=budget, **settings)
    model = distribute(model)

    def step(checkpoint):
        model.zero_grad(set_to_none=True)
        torch.manual_seed(1)
        with rematch.watch() as figures:
            for index, x in enumerate(batches):
                model.set_requires_gradient_sync(index + 1 == len(batches))
                with contextlib.ExitStack() as recording:
                    if checkpoint is not None:
                        recording.enter_context(rematch.scopes(model))
                        recording.enter_context(rematch.recording(checkpoint))
                    loss = loss_of(x)
                loss.backward()
        return bits_of(model, loss), sum(figures["ops"]["recompute"].values())

    expected, none = step(None)
    assert none == 0, none
    found, recomputed = step(checkpoint)
    assert all(torch.equal(want, have) for want, have in zip(expected, found, strict=True))
    assert recomputed > 0 and recomputed % len(batches) == 0, recomputed


class Exchange(torch.nn.Module):
    """A linear layer that exchanges its result with the other rank, and adds what it receives."""

    def __init__(self, linear):
        super().__init__()
        self.linear, self.exchange = linear, None

    def forward(self, x):
        y = self.linear(x)
        return y if self.exchange is None else y + self.exchange(y.detach(), 1 - torch.distributed.get_rank())


def by_handles(mine, peer):
    other = torch.empty_like(mine)
    for work in torch.distributed.isend(mine, peer), torch.distributed.irecv(other, peer):
        work.wait()
    return other


def in_a_batch(mine, peer):
    other = torch.empty_like(mine)
    for work in torch.distributed.batch_isend_irecv([torch.distributed.P2POp(torch.distributed.isend, mine, peer),
                                                     torch.distributed.P2POp(torch.distributed.irecv, other, peer)]):
        work.wait()
    return other


def one_after_the_other(mine, peer):
    other = torch.empty_like(mine)
    if peer > 0:
        torch.distributed.send(mine, peer)
        torch.distributed.recv(other, peer)
    else:
        torch.distributed.recv(other, peer)
        torch.distributed.send(mine, peer)
    return other


def by_a_sum(mine, _):
    total = mine.clone()
    torch.distributed.all_reduce(total)
    return total


# Enough buffers for every layer to have its own.
BUFFERS = itertools.cycle([torch.zeros(128) for _ in range(16)])


def by_a_sum_of_a_buffer(mine, _):
    """Reads a buffer before and after all_reduce sums it over the ranks. The op's schema does not say that all_reduce
    writes to the buffer."""
    buffer = next(BUFFERS)
    buffer.copy_(torch.linspace(0, 1, 128))
    before = torch.sin(mine * buffer.clone())
    torch.distributed.all_reduce(buffer)
    return before + torch.sin(mine * buffer.clone())


def exchange_between_layers(rank, exchange, policy):
    """Tests layers that send messages to the other rank. A plan whose regions contain messages must be rejected with an
    error that names the op. A layer that does not follow its plan must send its messages only once."""
    torch.manual_seed(rank)
    model, x = Model(), torch.randn(64, 32)
    for layer in model.layers:
        layer.feed_forward[0] = Exchange(layer.feed_forward[0])
    plan = rematch.resolve(rematch.trace(model, lambda: model(x)), policy)
    for layer in model.layers:
        layer.feed_forward[0].exchange = exchange
    planned = rematch.resolve(rematch.trace(model, lambda: model(x)), policy)
    try:
        rematch.Checkpoint(planned)
        raise AssertionError("a plan with messages in its regions was not refused")
    except rematch.RematchError as error:
        assert re.match(r"plan has c10d::(send|recv_|allreduce_) \(scope feed_forward.0\) in a region", str(error)), error

    def step(checkpoint):
        model.zero_grad(set_to_none=True)
        torch.manual_seed(1)
        with rematch.recording(checkpoint) if checkpoint else warnings.catch_warnings():
            loss = model(x)
        with rematch.watch() as figures:
            loss.backward()
        return bits_of(model, loss), figures["ops"]["recompute"]

    expected, _ = step(None)
    for schedule in SCHEDULES:
        checkpoint = rematch.Checkpoint(plan, schedule)
        with rematch.scopes(model, checkpoint), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, recomputed = step(checkpoint)
        assert all(torch.equal(want, have) for want, have in zip(expected, found, strict=True)), schedule
        assert recomputed and not any(name.startswith("c10d") for name in recomputed), recomputed
        assert all(row["left"] == row["passes"] for row in checkpoint.report()), checkpoint.report()


def run_rank(rank, port, on_one_rank, distribute, policy):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=NUM_RANKS)
    on_one_rank(rank, distribute, policy)
    torch.distributed.barrier()  # both ranks must end together, because they share connections
    torch.distributed.destroy_process_group()
    # Ends the process without Python's clean-up. DTensor's caches keep Gloo's threads alive, and the process would
    # abort if such a thread freed a tensor while Python exits.
    os._exit(0)


class RanksTest(unittest.TestCase):
    def run_ranks(self, distribute, policy, on_one_rank=compare_on_one_rank):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        torch.multiprocessing.spawn(run_rank, (port, on_one_rank, distribute, policy), NUM_RANKS)

    def test_one_rank_leaves_the_plan(self):
        for distribute, policy in ((split, "full"), (split, "save_mm"), (split, "segments(2)"), (split_with_sequence, "full"),
                                   (split_with_sequence, "segments(2)")):
            with self.subTest(distribute=distribute.__name__, policy=policy):
                self.run_ranks(distribute, policy, leave_the_plan_on_one_rank)

    def test_messages_in_layers(self):
        for exchange, policy in ((by_handles, "full"), (in_a_batch, "save_mm"), (one_after_the_other, "full"), (by_a_sum, "full"),
                                 (by_a_sum_of_a_buffer, "full")):
            with self.subTest(exchange=exchange.__name__, policy=policy):
                self.run_ranks(exchange, policy, exchange_between_layers)

    def test_data_parallel(self):
        self.run_ranks(replicated, "full")

    def test_fully_sharded(self):
        self.run_ranks(sharded, "full")
        self.run_ranks(sharded, "save_mm")

    def test_micro_batches_under_fully_shard(self):
        self.run_ranks(sharded, "auto", accumulate_on_one_rank)

    def test_fully_sharded_in_another_precision_than_the_trace(self):
        self.run_ranks(sharded_in_bfloat16, "full")
        self.run_ranks(sharded_in_bfloat16, "save_mm")

    def test_regions_in_several_units(self):
        self.run_ranks(sharded, "segments(2)", assert_refused_before_the_step)
        self.run_ranks(sharded_and_never_freed, "segments(2)")

    def test_applied_before_and_after_the_wrapper(self):
        for distribute in (replicated, sharded):
            with self.subTest(distribute=distribute.__name__):
                self.run_ranks(distribute, "full", apply_on_one_rank)

    def test_tensor_parallel(self):
        self.run_ranks(split, "full")
        self.run_ranks(split, "save_mm")

    def test_tensor_parallel_with_collectives_in_recompute(self):
        self.run_ranks(split, "segments(2)")

    def test_sequence_parallel(self):
        self.run_ranks(split_with_sequence, "full")
        self.run_ranks(split_with_sequence, "segments(2)")


if __name__ == "__main__":
    unittest.main()
