"""Wan-2.1-T2V-1.3B of diffusers in bfloat16, with one video of 77 x 480 x 832 (31,200 tokens) and 512 text tokens.
Use with export_trace.py --fake, without data."""

import torch

FRAMES, HEIGHT, WIDTH = 20, 60, 104  # latent size


def make():
    from diffusers import WanTransformer3DModel
    # The dtype is set before the model is made, because fake parameters cannot be converted later.
    torch.set_default_dtype(torch.bfloat16)
    model = WanTransformer3DModel(
        num_attention_heads=12, attention_head_dim=128, in_channels=16, out_channels=16, text_dim=4096, freq_dim=256,
        ffn_dim=8960, num_layers=30)
    torch.set_default_dtype(torch.float32)
    video = torch.zeros(1, 16, FRAMES, HEIGHT, WIDTH, dtype=torch.bfloat16)
    text = torch.zeros(1, 512, 4096, dtype=torch.bfloat16)

    def step():
        noise = model(hidden_states=video, timestep=torch.tensor([500]), encoder_hidden_states=text, return_dict=False)[0]
        return noise.float().square().mean()

    return model, step
