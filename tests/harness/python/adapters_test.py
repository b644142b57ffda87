"""Tests models with PEFT adapters: predictions, adapters that are disabled during a part of a step, merged adapters,
and inputs that require gradients."""

import importlib.util
import unittest

import rematch
import torch
from beside_torch import SCHEDULES, BesideTorch

# An adapter's scaling is a Python number. Autograd saves it as a tensor of 8 bytes that saved-tensor hooks do not see,
# so traces do not include these bytes.
NUMBER_BYTES = 8


@unittest.skipUnless(importlib.util.find_spec("peft") and importlib.util.find_spec("transformers"),
                     "peft or transformers is not installed")
class AdaptersTest(BesideTorch):
    def model_with(self, lora_dropout=0.1, **options):
        from peft import LoraConfig, get_peft_model
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(0)
        model = LlamaForCausalLM(LlamaConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            vocab_size=64, use_cache=False))
        targets = ["q_proj", "v_proj", "up_proj"]
        self.num_adapters = len(targets) * model.config.num_hidden_layers
        self.model = get_peft_model(model, LoraConfig(r=4, lora_dropout=lora_dropout, target_modules=targets, **options)).train()
        self.ids = torch.randint(0, 64, (4, 16))
        return self.model

    def loss(self):
        return self.model(input_ids=self.ids, labels=self.ids).loss

    def train(self, around):
        with around():
            loss = self.loss()
        loss.backward()
        return loss

    def check(self, **options):
        self.model_with(**options)
        trace = rematch.trace(self.model, self.loss)
        plans = {policy: rematch.resolve(trace, policy) for policy in ("full", "save_mm")}
        self.compare(self.model, self.train, plans, draws=True, leaves=False)
        for policy, plan in plans.items():
            for schedule in SCHEDULES:
                with self.subTest(policy=policy, schedule=schedule):
                    predicted = rematch.predict(trace, plan, schedule)
                    found = rematch.check(self.model, self.loss, rematch.Checkpoint(plan, schedule))["checkpointed"]
                    self.assertEqual(found["executed_ops"]["recompute"], predicted["recomputed_ops"])
                    rise = predicted["peak_bytes"] - predicted["before_bytes"]
                    self.assertEqual(found["peak_bytes"], rise + self.num_adapters * NUMBER_BYTES)

    def test_lora(self):
        self.check()
        self.check(lora_dropout=0.0, use_rslora=True)

    def test_dora(self):
        self.check(use_dora=True)

    def preferences(self, around_reference):
        """Returns a DPO loss. The reference model is `model` with its adapters disabled."""
        with around_reference(), self.model.disable_adapter():
            reference = -self.loss().detach()
        return -torch.nn.functional.logsigmoid(-self.loss() - reference)

    def test_adapters_that_one_pass_disables(self):
        self.model_with()
        plans = {"of the plain step": self.plans_of(self.model, self.loss, ["full"])["full"],
                 "of this step": self.plans_of(self.model, lambda: self.preferences(torch.no_grad), ["full"])["full"]}
        for around_reference in (torch.no_grad, torch.enable_grad):
            def train(around, around_reference=around_reference):
                with around():
                    loss = self.preferences(around_reference)
                loss.backward()
                return loss

            with self.subTest(reference=around_reference.__name__):
                self.compare(self.model, train, plans, draws=True)

    def test_merged_adapters(self):
        self.model_with()
        plans = self.plans_of(self.model, self.loss, ["full"])
        self.model.merge_adapter()
        self.model.model.model.embed_tokens.requires_grad_(True)  # otherwise no parameter would have a gradient
        self.compare(self.model, self.train, plans, draws=True, leaves=True)

    def test_inputs_that_require_gradients_after_the_trace(self):
        self.model_with()
        plans = self.plans_of(self.model, self.loss, ["full"])
        self.model.enable_input_require_grads()
        self.compare(self.model, self.train, plans, draws=True)


if __name__ == "__main__":
    unittest.main()
