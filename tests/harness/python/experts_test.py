"""Tests mixture-of-experts models from transformers. The routing decides which ops run, so each batch runs different
ops."""

import importlib.util
import unittest

import torch
from beside_torch import BesideTorch

NUM_BATCHES = 4


@unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
class ExpertsTest(BesideTorch):
    def model_of(self, name, experts):
        import transformers

        options = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 64,
                   "use_cache": False}
        torch.manual_seed(0)
        if name == "Mixtral":
            config = transformers.MixtralConfig(intermediate_size=32, num_local_experts=8, **options)
        else:
            config = transformers.Qwen3MoeConfig(intermediate_size=64, moe_intermediate_size=32, head_dim=16, num_experts=8,
                                                 num_experts_per_tok=2, **options)
        model = getattr(transformers, f"{name}ForCausalLM")(config)
        model.set_experts_implementation(experts)
        return model

    def check(self, name, experts, leaves):
        model = self.model_of(name, experts)
        batches = [torch.randint(0, 64, (2, 16)) for _ in range(NUM_BATCHES)]
        # Adds a batch that uses few experts, and a batch whose tokens are all equal.
        batches += [torch.randint(0, 64, (1, 4)), torch.zeros(2, 16, dtype=torch.long)]

        def train(around):
            losses = []
            for ids in batches:
                with around():
                    losses.append(model(input_ids=ids, labels=ids).loss)
                losses[-1].backward()
            return [loss.detach() for loss in losses]

        plans = self.plans_of(model, lambda: model(input_ids=batches[0], labels=batches[0]).loss, ["full", "save_mm"])
        self.compare(model, train, plans, leaves=leaves)

    def test_a_loop_over_experts(self):
        self.check("Mixtral", "eager", leaves=True)
        self.check("Qwen3Moe", "eager", leaves=True)

    def test_one_product_for_all_experts(self):
        self.check("Mixtral", "batched_mm", leaves=False)
        self.check("Mixtral", "grouped_mm", leaves=False)


if __name__ == "__main__":
    unittest.main()
