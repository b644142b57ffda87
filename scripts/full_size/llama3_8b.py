"""Llama-3-8B of transformers in bfloat16, with one sequence of 8,192 tokens. Use with export_trace.py --fake,
without data."""

import torch

TOKENS = 8192


def make():
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM._from_config(LlamaConfig(
        hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8,
        vocab_size=128256, max_position_embeddings=TOKENS, use_cache=False), dtype=torch.bfloat16)
    ids = torch.zeros(1, TOKENS, dtype=torch.int64)
    return model, lambda: model(input_ids=ids, labels=ids).loss
