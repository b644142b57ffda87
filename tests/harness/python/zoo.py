"""Models of other packages, with small configurations and random weights. Each function returns a model and its step.
`scale` multiplies the width and the number of heads."""

import torch


def language_model(model):
    ids = torch.randint(0, 256, (4, 128))
    return model, lambda: model(input_ids=ids, labels=ids).loss


def llama(scale=1):
    from transformers import LlamaConfig, LlamaForCausalLM
    return language_model(LlamaForCausalLM(LlamaConfig(
        hidden_size=64 * scale, intermediate_size=128 * scale, num_hidden_layers=4, num_attention_heads=4 * scale,
        num_key_value_heads=2 * scale, vocab_size=256, use_cache=False)))


def qwen3(scale=1):
    from transformers import Qwen3Config, Qwen3ForCausalLM
    return language_model(Qwen3ForCausalLM(Qwen3Config(
        hidden_size=64 * scale, intermediate_size=128 * scale, num_hidden_layers=4, num_attention_heads=4 * scale,
        num_key_value_heads=2 * scale, head_dim=16, vocab_size=256, use_cache=False)))


def mixtral(scale=1):
    from transformers import MixtralConfig, MixtralForCausalLM
    return language_model(MixtralForCausalLM(MixtralConfig(
        hidden_size=64 * scale, intermediate_size=64 * scale, num_hidden_layers=3, num_attention_heads=4 * scale,
        num_key_value_heads=2 * scale, num_local_experts=4, vocab_size=256, use_cache=False)))


def gpt2(scale=1):
    from transformers import GPT2Config, GPT2LMHeadModel
    return language_model(GPT2LMHeadModel(GPT2Config(
        n_embd=64 * scale, n_layer=4, n_head=4 * scale, vocab_size=256, n_positions=128, bos_token_id=0, eos_token_id=0,
        use_cache=False)))


def bert(scale=1):
    from transformers import BertConfig, BertForMaskedLM
    return language_model(BertForMaskedLM(BertConfig(
        hidden_size=64 * scale, intermediate_size=128 * scale, num_hidden_layers=4, num_attention_heads=4 * scale,
        vocab_size=256)))


def vit(scale=1):
    from transformers import ViTConfig, ViTForImageClassification
    model = ViTForImageClassification(ViTConfig(
        hidden_size=64 * scale, intermediate_size=128 * scale, num_hidden_layers=4, num_attention_heads=4 * scale,
        image_size=32, patch_size=8))
    pixels = torch.randn(16, 3, 32, 32)
    return model, lambda: model(pixel_values=pixels, labels=torch.arange(16) % 2).loss


def wan(scale=1):
    from diffusers import WanTransformer3DModel
    model = WanTransformer3DModel(
        num_attention_heads=2 * scale, attention_head_dim=16, in_channels=4, out_channels=4, text_dim=16, freq_dim=16,
        ffn_dim=64 * scale, num_layers=3)
    video, text = torch.randn(2, 4, 4, 16, 16), torch.randn(2, 6, 16)
    return model, lambda: model(hidden_states=video, timestep=torch.tensor([500, 200]), encoder_hidden_states=text,
                                return_dict=False)[0].square().mean()


def flux(scale=1):
    from diffusers import FluxTransformer2DModel
    model = FluxTransformer2DModel(
        patch_size=1, in_channels=16, num_layers=2, num_single_layers=2, attention_head_dim=16,
        num_attention_heads=2 * scale, joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 4, 8))
    image, text = torch.randn(1, 256, 16), torch.randn(1, 6, 32)
    return model, lambda: model(
        hidden_states=image, encoder_hidden_states=text, pooled_projections=torch.ones(1, 32),
        timestep=torch.tensor([0.5]), img_ids=torch.zeros(256, 3), txt_ids=torch.zeros(6, 3),
        return_dict=False)[0].square().mean()


def ltx(scale=1):
    from diffusers import LTXVideoTransformer3DModel
    model = LTXVideoTransformer3DModel(
        in_channels=8, out_channels=8, num_attention_heads=2 * scale, attention_head_dim=16, cross_attention_dim=32 * scale,
        num_layers=3, caption_channels=16)
    video, text = torch.randn(1, 8 * 8 * 8, 8), torch.randn(1, 6, 16)
    return model, lambda: model(
        hidden_states=video, encoder_hidden_states=text, timestep=torch.tensor([500.0]),
        encoder_attention_mask=torch.ones(1, 6), num_frames=8, height=8, width=8, return_dict=False)[0].square().mean()


def sd3(scale=1):
    from diffusers import SD3Transformer2DModel
    model = SD3Transformer2DModel(
        sample_size=16, patch_size=1, in_channels=4, num_layers=3, attention_head_dim=16, num_attention_heads=2 * scale,
        joint_attention_dim=32, caption_projection_dim=32 * scale, pooled_projection_dim=16, out_channels=4)
    image, text = torch.randn(1, 4, 16, 16), torch.randn(1, 6, 32)
    return model, lambda: model(
        hidden_states=image, encoder_hidden_states=text, pooled_projections=torch.ones(1, 16),
        timestep=torch.tensor([500]), return_dict=False)[0].square().mean()


def qwen3_moe():
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM
    return language_model(Qwen3MoeForCausalLM(Qwen3MoeConfig(
        hidden_size=64, intermediate_size=128, moe_intermediate_size=64, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, num_experts=8, num_experts_per_tok=2, vocab_size=256, use_cache=False,
        output_router_logits=True)))


def rwkv():
    from transformers import RwkvConfig, RwkvForCausalLM
    model = RwkvForCausalLM(RwkvConfig(
        hidden_size=32, attention_hidden_size=32, intermediate_size=64, num_hidden_layers=3, vocab_size=256,
        context_length=64, use_cache=False))
    ids = torch.randint(0, 256, (2, 8))  # a short sequence, because each token runs about 30 ops per layer
    return model, lambda: model(input_ids=ids, labels=ids).loss


def albert():
    """Makes a model that runs one layer six times."""
    from transformers import AlbertConfig, AlbertForMaskedLM
    return language_model(AlbertForMaskedLM(AlbertConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=6, num_attention_heads=4, vocab_size=256,
        embedding_size=32)))


def llava():
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration
    image_token = 255
    model = LlavaForConditionalGeneration(LlavaConfig(
        vision_config=CLIPVisionConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=2,
                                       image_size=32, patch_size=8),
        text_config=LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
                                num_key_value_heads=2, vocab_size=256, use_cache=False),
        image_token_id=image_token, image_seq_length=16))
    ids, pixels = torch.randint(0, 250, (2, 64)), torch.randn(2, 3, 32, 32)
    ids[:, 4:20] = image_token
    return model, lambda: model(input_ids=ids, pixel_values=pixels, labels=ids, use_cache=False).loss


def hunyuan_video():
    from diffusers import HunyuanVideoTransformer3DModel
    model = HunyuanVideoTransformer3DModel(
        in_channels=4, out_channels=4, num_attention_heads=2, attention_head_dim=16, num_layers=2, num_single_layers=2,
        num_refiner_layers=1, patch_size=2, patch_size_t=1, guidance_embeds=True, text_embed_dim=32,
        pooled_projection_dim=16, rope_axes_dim=(4, 6, 6))
    video, text, mask = torch.randn(1, 4, 3, 16, 16), torch.randn(1, 8, 32), torch.ones(1, 8, dtype=torch.long)
    return model, lambda: model(
        hidden_states=video, timestep=torch.tensor([500]), encoder_hidden_states=text, encoder_attention_mask=mask,
        pooled_projections=torch.ones(1, 16), guidance=torch.tensor([6000.0]), return_dict=False)[0].square().mean()


def cogvideox():
    """Makes a model that never reads the text output of the last layer."""
    from diffusers import CogVideoXTransformer3DModel
    model = CogVideoXTransformer3DModel(
        num_attention_heads=2, attention_head_dim=16, in_channels=4, out_channels=4, time_embed_dim=16, text_embed_dim=16,
        num_layers=3, sample_width=16, sample_height=16, sample_frames=9, patch_size=2, temporal_compression_ratio=4,
        max_text_seq_length=8)
    video, text = torch.randn(1, 3, 4, 16, 16), torch.randn(1, 8, 16)
    return model, lambda: model(hidden_states=video, encoder_hidden_states=text, timestep=torch.tensor([500]),
                                return_dict=False)[0].square().mean()


def qwen_image():
    """Makes a model that never reads the text output of the last layer. The model caches a table of 4,096 bytes in its
    first step."""
    from diffusers import QwenImageTransformer2DModel
    model = QwenImageTransformer2DModel(
        patch_size=2, in_channels=16, out_channels=4, num_layers=3, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=16, axes_dims_rope=(4, 6, 6))
    image, text, mask = torch.randn(1, 64, 16), torch.randn(1, 8, 16), torch.ones(1, 8, dtype=torch.bool)
    return model, lambda: model(
        hidden_states=image, encoder_hidden_states=text, encoder_hidden_states_mask=mask, timestep=torch.tensor([0.5]),
        img_shapes=[[(1, 8, 8)]], return_dict=False)[0].square().mean()


def unet():
    """Makes a model whose layers run in the order down, middle, up, but are listed in a different order."""
    from diffusers import UNet2DModel
    model = UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, layers_per_block=2, block_out_channels=(16, 32, 32),
        norm_num_groups=8, attention_head_dim=8, down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"))
    images = torch.randn(2, 3, 16, 16)
    return model, lambda: model(images, torch.tensor([10, 500])).sample.square().mean()


PACKAGE_OF = {llama: "transformers", qwen3: "transformers", mixtral: "transformers", gpt2: "transformers",
              bert: "transformers", vit: "transformers", qwen3_moe: "transformers", rwkv: "transformers",
              albert: "transformers", llava: "transformers", wan: "diffusers", flux: "diffusers", ltx: "diffusers",
              sd3: "diffusers", hunyuan_video: "diffusers", cogvideox: "diffusers", qwen_image: "diffusers",
              unet: "diffusers"}
