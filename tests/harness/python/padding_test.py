"""Tests models from transformers with unusual batches: with padding, with a single row or with a single token. A plan
made for an ordinary batch must work for unusual batches, and vice versa."""

import importlib.util
import unittest

import torch
from beside_torch import BesideTorch


@unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
class PaddingTest(BesideTorch):
    def check(self, model):
        ids = torch.randint(0, 64, (4, 16), generator=torch.Generator().manual_seed(0))
        ones = torch.ones_like(ids)
        padded = ones.clone()
        padded[0, :5] = 0
        batches = {"all ones": (ids, ones), "padded": (ids, padded), "no mask": (ids, None), "three rows": (ids[:3], ones[:3]),
                   "one row": (ids[:1], ones[:1]), "one token": (ids[:, :1], ones[:, :1]), "one of each": (ids[:1, :1], None)}

        def loss(name):
            ids, mask = batches[name]
            return model(input_ids=ids, attention_mask=mask).logits.square().mean()

        def train(around):
            losses = []
            for name in batches:
                with around():
                    losses.append(loss(name))
                losses[-1].backward()
            return [each.detach() for each in losses]

        for traced in ("all ones", "padded"):
            with self.subTest(traced=traced):
                plans = self.plans_of(model, lambda traced=traced: loss(traced), ["full", "save_mm"])
                self.compare(model, train, plans, leaves=True)

    def test_llama(self):
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.manual_seed(0)
        self.check(LlamaForCausalLM(LlamaConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=64,
            use_cache=False, pad_token_id=0)))

    def test_bert(self):
        from transformers import BertConfig, BertForMaskedLM

        torch.manual_seed(0)
        self.check(BertForMaskedLM(BertConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=64,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)))


if __name__ == "__main__":
    unittest.main()
