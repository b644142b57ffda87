"""Tests training loops of other packages, in which forward runs inside rematch.recording. After some steps, parameters
must be bit-identical to those without rematch, and no memory may leak."""

import functools
import gc
import importlib.util
import os
import pathlib
import tempfile
import unittest
import unittest.mock
import warnings

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from beside_torch import checkpointed_by_torch  # noqa: E402

NUM_LEAK_STEPS = 20
SCHEDULES = ("whole_region", "on_demand")
BATCH_SIZE = 2


def has_package(name):
    return importlib.util.find_spec(name) is not None


def small_llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
        attention_dropout=0.1, vocab_size=128, use_cache=False))
    return model.train()


def texts(count):
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(0, 128, (count, 16), generator=generator)
    return [{"input_ids": row, "labels": row} for row in rows]


@unittest.skipUnless(has_package("transformers") and has_package("accelerate"), "transformers or accelerate is not installed")
class LoopTest(unittest.TestCase):
    def plan(self):
        model = small_llama()
        ids = torch.stack([row["input_ids"] for row in texts(BATCH_SIZE)])
        return rematch.resolve(rematch.trace(model, lambda: model(input_ids=ids, labels=ids).loss), "full")

    def check(self, train):
        """`train(model, num_steps, checkpoint)` trains the model, without a plan if `checkpoint` is None. The peak
        under a plan may not exceed the peak with torch.utils.checkpoint around each layer."""
        expected, under_torch = small_llama(), small_llama()
        train(expected, 3, None)
        with checkpointed_by_torch(under_torch.model.layers, draws=True):
            limit, _ = self.watched(lambda: train(under_torch, 3, None))
        plan = self.plan()
        for schedule in SCHEDULES:
            with self.subTest(schedule=schedule):
                checkpoint = rematch.Checkpoint(plan, schedule)
                found = small_llama()
                rise, num_recomputed = self.watched(lambda: train(found, 3, checkpoint))
                self.assertGreater(num_recomputed, 0)
                self.assertLessEqual(rise, limit)
                for want, have in zip(expected.parameters(), found.parameters(), strict=True):
                    self.assertTrue(torch.equal(want, have))
                self.assert_no_leak(train, checkpoint)

    def watched(self, run):
        """Returns the bytes that `run` adds at its peak, and the number of recomputed ops."""
        gc.collect()
        with rematch.watch() as figures:
            run()
        return max(figures["peak_bytes"].values()) - figures["before_bytes"], sum(figures["ops"].get("recompute", {}).values())

    def assert_no_leak(self, train, checkpoint):
        def held_after(num_steps):
            model = small_llama()
            train(model, num_steps, checkpoint)
            model.zero_grad(set_to_none=True)
            gc.collect()
            return rematch.allocated_bytes()

        self.assertEqual(held_after(2), held_after(NUM_LEAK_STEPS))

    def test_a_hugging_face_trainer(self):
        self.check(self.trained_by_hugging_face)

    def test_a_hugging_face_trainer_that_evaluates(self):
        def train(model, num_steps, checkpoint):
            return self.trained_by_hugging_face(model, num_steps, checkpoint, eval_strategy="steps", eval_steps=1)

        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="rematch")
            self.check(train)

    def test_an_applied_model(self):
        """Tests rematch.apply, which is called before training, so the trainer needs no changes."""
        def applied(train, **options):
            def run(model, num_steps, checkpoint):
                train(model if checkpoint is None else rematch.apply(model, checkpoint), num_steps, None, **options)
            return run

        trains = applied(self.trained_by_hugging_face, eval_strategy="steps", eval_steps=1), applied(self.trained_by_accelerate)
        for train in trains:
            with warnings.catch_warnings():
                warnings.filterwarnings("error", message="rematch")
                self.check(train)

    def test_bfloat16_after_a_trace_in_float32(self):
        from accelerate.state import AcceleratorState

        options = {self.trained_by_hugging_face: {"bf16": True}, self.trained_by_accelerate: {"mixed_precision": "bf16"}}
        for train, precision in options.items():
            with self.subTest(train=train.__name__), unittest.mock.patch.dict(os.environ), warnings.catch_warnings():
                # accelerate stores the precision in global state, which must be reset
                AcceleratorState._reset_state(reset_partial_state=True)
                self.addCleanup(AcceleratorState._reset_state, reset_partial_state=True)
                warnings.filterwarnings("ignore", message="rematch: region .* left its plan")
                self.check(functools.partial(train, **precision))

    def test_generating_inside_a_recording(self):
        model = small_llama().eval()  # without dropout, so that both runs give the same result
        ids = torch.stack([row["input_ids"] for row in texts(BATCH_SIZE)])
        checkpoint = rematch.Checkpoint(self.plan())
        expected = model.generate(ids, max_new_tokens=4, do_sample=False)
        with warnings.catch_warnings(), rematch.scopes(model, checkpoint):
            warnings.filterwarnings("error", message="rematch")
            with rematch.recording(checkpoint):
                self.assertTrue(torch.equal(model.generate(ids, max_new_tokens=4, do_sample=False), expected))

    def test_generating_with_an_applied_model(self):
        model = small_llama().eval()
        ids = torch.stack([row["input_ids"] for row in texts(BATCH_SIZE)])
        expected = model.generate(ids, max_new_tokens=4, do_sample=False)
        rematch.apply(model, self.plan())
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="rematch")
            self.assertTrue(torch.equal(model.generate(ids, max_new_tokens=4, do_sample=False), expected))

    @unittest.skipUnless(has_package("peft"), "peft is not installed")
    def test_adapters_around_an_applied_model(self):
        """Tests rematch.apply with PEFT, which calls forward() of the wrapped module directly."""
        import peft

        ids = torch.stack([row["input_ids"] for row in texts(BATCH_SIZE)])

        def gradients(prepare):
            torch.manual_seed(3)
            model = peft.get_peft_model(prepare(small_llama()), peft.LoraConfig(target_modules=["q_proj"], r=2))
            torch.manual_seed(4)
            with rematch.watch() as figures:
                loss = model(input_ids=ids, labels=ids).loss
                loss.backward()
            found = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
            return [loss.detach(), *found], sum(figures["ops"]["recompute"].values())

        plan = self.plan()
        expected, none = gradients(lambda model: model)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="rematch: region .* left its plan")
            warnings.filterwarnings("error", message="rematch: .* runs outside")
            found, num_recomputed = gradients(lambda model: rematch.apply(model, plan))
        self.assertEqual(none, 0)
        self.assertGreater(num_recomputed, 0)
        for want, have in zip(expected, found, strict=True):
            self.assertTrue(torch.equal(want, have))

    def trained_by_hugging_face(self, model, num_steps, checkpoint, **options):
        from transformers import PrinterCallback, Trainer, TrainingArguments

        class Recorded(Trainer):
            checkpoint = None

            def compute_loss(self, *arguments, **keywords):
                with rematch.recording(self.checkpoint):
                    return super().compute_loss(*arguments, **keywords)

        with tempfile.TemporaryDirectory() as folder:
            kind = Trainer if checkpoint is None else Recorded
            data = texts(2 * BATCH_SIZE * num_steps)
            trainer = kind(model=model, train_dataset=data, eval_dataset=data[:2 * BATCH_SIZE], args=TrainingArguments(
                output_dir=str(pathlib.Path(folder)), use_cpu=True, per_device_train_batch_size=BATCH_SIZE,
                per_device_eval_batch_size=BATCH_SIZE, gradient_accumulation_steps=2, max_steps=num_steps, save_strategy="no",
                report_to=[], seed=1, disable_tqdm=True, logging_strategy="no", **options))
            trainer.remove_callback(PrinterCallback)
            if checkpoint is None:
                trainer.train()
                return
            trainer.checkpoint = checkpoint
            with rematch.scopes(model):
                trainer.train()

    def test_an_accelerate_loop(self):
        self.check(self.trained_by_accelerate)

    def trained_by_accelerate(self, model, num_steps, checkpoint, **options):
        from accelerate import Accelerator

        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, **options)
        data = torch.utils.data.DataLoader(texts(2 * BATCH_SIZE * num_steps), batch_size=BATCH_SIZE)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        model, optimizer, data = accelerator.prepare(model, optimizer, data)
        torch.manual_seed(2)
        for batch in data:
            with accelerator.accumulate(model):
                if checkpoint is None:
                    loss = model(**batch).loss
                else:
                    with rematch.scopes(accelerator.unwrap_model(model)), rematch.recording(checkpoint):
                        loss = model(**batch).loss
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        accelerator.free_memory()


if __name__ == "__main__":
    unittest.main()
