"""Tests which modules of a model rematch chooses as its layers, for many kinds of models. Plans for these layers must
give equal bits."""

import contextlib
import functools
import importlib.util
import io
import unittest

import rematch

rematch.count_memory()  # replaces torch's allocators, so it must run before any tensor is made

import torch  # noqa: E402
from beside_torch import BesideTorch  # noqa: E402
from rematch.blocks import choose_blocks  # noqa: E402
from rematch.selftest import Layer  # noqa: E402
from torch.nn import Linear, ModuleDict, ModuleList, Sequential  # noqa: E402

DIM = 32


class Mixer(Layer):
    """A layer whose class is not Layer itself."""


class Experts(Layer):
    """A layer that contains a list of experts. The experts are not layers of the model."""

    def __init__(self, dim, num_experts=6):
        super().__init__(dim)
        self.experts = ModuleList(Sequential(Linear(dim, dim), torch.nn.GELU()) for _ in range(num_experts))

    def forward(self, x):
        return sum((expert(x) for expert in self.experts), start=super().forward(x))


class Stage(torch.nn.Module):
    """A block that contains a list of layers, such as a stage of a U-Net."""

    def __init__(self, *layers):
        super().__init__()
        self.resnets = ModuleList(layers)

    def forward(self, x):
        for layer in self.resnets:
            x = layer(x)
        return x


class OtherStage(Stage):
    """A stage whose class is not Stage itself."""


class Chain(torch.nn.Module):
    """Runs the modules that the function `order` returns, one after the other."""

    def __init__(self, order, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.order = order

    def forward(self, x):
        for module in self.order(self):
            x = module(x)
        return x.square().mean()


def layers(count, kind=Layer):
    return [kind(DIM) for _ in range(count)]


def of_list(modules):
    return Chain(lambda chain: chain.layers, layers=ModuleList(modules))


def u_net():
    return Chain(lambda chain: [*chain.down, chain.middle, *chain.up],
                 down=ModuleList([Stage(*layers(2)), OtherStage(*layers(3))]),
                 up=ModuleList([OtherStage(*layers(3)), Stage(*layers(3))]), middle=Stage(*layers(2)))


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(16, DIM)

    def assert_governed(self, model, names, blocks=None):
        """Checks that a plan with policy full has the layers `names`, in this order, and that the plan runs as
        predicted."""
        trace = rematch.trace(model, lambda: model(self.x), blocks=blocks)
        plan = rematch.resolve(trace, "full")
        self.assertEqual([region["first_scope"] for region in plan["regions"]], names)
        found = rematch.check(model, lambda: model(self.x), rematch.Checkpoint(plan), blocks=blocks)
        self.assertTrue(found["bits_equal"])
        self.assertEqual(found["checkpointed"]["executed_ops"]["recompute"], rematch.predict(trace, plan)["recomputed_ops"])


class FoundTest(Case):
    def assert_found(self, model, expected, passed_over=(), names=None):
        """`expected` maps the name of each list to its number of layers. `names` lists the layers in the order in which
        they run. By default they run in the order of the lists."""
        taken, others = choose_blocks(model)
        self.assertEqual({name: len(modules) for name, modules in taken.items()}, expected)
        self.assertEqual(list(others), list(passed_over))
        self.assertEqual(rematch.find_blocks(model), taken)
        in_order = [f"{name}.{index}" for name, count in expected.items() for index in range(count)]
        self.assert_governed(model, names or in_order)

    def test_a_dict_of_layers(self):
        model = Chain(lambda chain: chain.layers.values(), layers=ModuleDict(zip("abc", layers(3))))
        self.assert_found(model, {"layers": 3})

    def test_a_dict_that_holds_the_list(self):
        model = Chain(lambda chain: [chain.body["embed"], *chain.body["h"]],
                      body=ModuleDict({"embed": Linear(DIM, DIM), "h": ModuleList(layers(2))}))
        self.assert_found(model, {"body.h": 2})

    def test_layers_of_several_classes(self):
        self.assert_found(of_list([*layers(2), *layers(1, Mixer), *layers(1)]), {"layers": 4})
        self.assert_found(of_list([*layers(1), *layers(1, Mixer)]), {"layers": 2})

    def test_norms_between_the_layers(self):
        first, second = layers(2)
        self.assert_found(of_list([first, torch.nn.LayerNorm(DIM), second]), {"layers": 2})

    def test_layers_with_experts(self):
        self.assert_found(of_list([*layers(1), *layers(1, Experts), *layers(1)]), {"layers": 3}, ["layers.1.experts"])

    def test_a_u_net(self):
        self.assert_found(u_net(), {"down": 2, "up": 2, "middle": 1},
                          ["down.0.resnets", "down.1.resnets", "up.0.resnets", "up.1.resnets", "middle.resnets"],
                          ["down.0", "down.1", "middle.0", "up.0", "up.1"])

    def test_lists_of_lists(self):
        model = Chain(lambda chain: [layer for stage in chain.stages for layer in stage],
                      stages=ModuleList([ModuleList(layers(1)), ModuleList(layers(3))]))
        self.assert_found(model, {"stages.0": 1, "stages.1": 3})

    def test_towers(self):
        model = Chain(lambda chain: chain.towers, towers=ModuleList([Stage(*layers(3)), OtherStage(*layers(3, Mixer))]))
        self.assert_found(model, {"towers.0.resnets": 3, "towers.1.resnets": 3}, ["towers"])

    def test_an_encoder_and_a_decoder(self):
        model = Chain(lambda chain: [chain.encoder, chain.decoder], encoder=Stage(*layers(2)), decoder=Stage(*layers(2)))
        self.assert_found(model, {"encoder.resnets": 2, "decoder.resnets": 2})

    def test_a_layer_that_runs_several_times(self):
        (layer,) = layers(1)
        self.assert_found(of_list([layer] * 3), {"layers": 1}, names=["layers.0"] * 3)
        self.assert_found(Chain(lambda chain: [chain.group[0]] * 3, group=ModuleList(layers(1))), {"group": 1},
                          names=["group.0"] * 3)

    def test_heads_next_to_layers_are_not_layers(self):
        model = Chain(lambda chain: [*chain.layers, chain.head], layers=ModuleList(layers(2)),
                      head=Sequential(Linear(DIM, DIM), torch.nn.GELU()))
        self.assert_found(model, {"layers": 2})

    def test_a_model_without_lists(self):
        model = Chain(lambda chain: [chain.first, chain.second], first=layers(1)[0], second=layers(1)[0])
        self.assertEqual(choose_blocks(model), ({}, {}))

    def test_a_sequence_with_other_parts(self):
        self.assertEqual(choose_blocks(Sequential(Layer(DIM), torch.nn.LayerNorm(DIM), Layer(DIM))), ({}, {}))


class NamedTest(Case):
    def test_layers_outside_of_the_model(self):
        first, second = layers(2)
        model = Chain(lambda chain: [chain.body], body=Sequential(first, torch.nn.LayerNorm(DIM), second))
        self.assert_governed(model, ["layers.0", "layers.1"], blocks={"layers": [first, second]})

    def test_lists_that_were_not_chosen(self):
        model = u_net()
        blocks = {name: list(model.get_submodule(name).children()) for name in choose_blocks(model)[1]}
        self.assert_governed(model, ["down.0.resnets.0", "down.0.resnets.1", *(f"down.1.resnets.{i}" for i in range(3)),
                                     "middle.resnets.0", "middle.resnets.1", *(f"up.0.resnets.{i}" for i in range(3)),
                                     *(f"up.1.resnets.{i}" for i in range(3))], blocks=blocks)

    def test_a_module_of_two_layers_opens_one_scope(self):
        first, second = layers(2)
        second.norm = first.norm
        model = of_list([first, second])
        self.assert_governed(model, ["layers.0", "layers.1"])
        with rematch.scopes(model):
            self.assertEqual(len(first.norm._forward_pre_hooks), 1)


def jamba():
    """Makes a model in which attention layers and state-space layers alternate. Every second layer has experts."""
    from transformers import JambaConfig, JambaForCausalLM

    return JambaForCausalLM(JambaConfig(
        hidden_size=32, intermediate_size=32, num_hidden_layers=4, num_attention_heads=2, num_key_value_heads=2, vocab_size=64,
        attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, num_experts=2,
        use_cache=False))


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(T5Config(
        d_model=32, d_ff=32, num_layers=2, num_heads=2, d_kv=16, vocab_size=64, dropout_rate=0.0, use_cache=False,
        decoder_start_token_id=0))


def swin():
    """Makes a model with several stages of blocks. Each stage halves the resolution."""
    from transformers import SwinConfig, SwinForImageClassification

    return SwinForImageClassification(SwinConfig(
        image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 2], window_size=4, drop_path_rate=0.0))


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    return WhisperForConditionalGeneration(WhisperConfig(
        d_model=32, encoder_layers=2, decoder_layers=3, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=32, decoder_ffn_dim=32, vocab_size=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1))


def nemotron_h():
    """Makes a model with three kinds of layers."""
    from transformers import NemotronHConfig, NemotronHForCausalLM

    return NemotronHForCausalLM(NemotronHConfig(
        hidden_size=32, intermediate_size=32, layers_block_type=["mamba", "attention", "mlp", "mamba"], num_attention_heads=2,
        num_key_value_heads=2, vocab_size=64, mamba_num_heads=2, mamba_head_dim=16, n_groups=1))


def gpt_oss():
    from transformers import GptOssConfig, GptOssForCausalLM

    return GptOssForCausalLM(GptOssConfig(
        hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, head_dim=16,
        vocab_size=64, num_local_experts=4))


def conv_next():
    from transformers import ConvNextConfig, ConvNextForImageClassification

    return ConvNextForImageClassification(ConvNextConfig(hidden_sizes=[16, 32, 32, 32], depths=[2, 2, 2, 2]))


def conditional_u_net():
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(
        sample_size=8, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4, cross_attention_dim=16,
        attention_head_dim=4, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))


def autoencoder():
    from diffusers import AutoencoderKL

    return AutoencoderKL(block_out_channels=(8, 16), norm_num_groups=4, down_block_types=("DownEncoderBlock2D",) * 2,
                         up_block_types=("UpDecoderBlock2D",) * 2)


class PackagesTest(BesideTorch):
    """Tests models from transformers and diffusers."""

    def setUp(self):
        torch.manual_seed(0)

    def assert_found(self, make, expected, first_passed_over=None):
        """`first_passed_over` names the first list of modules that choose_blocks() finds but does not choose."""
        package = "diffusers" if make in (conditional_u_net, autoencoder) else "transformers"
        if importlib.util.find_spec(package) is None:
            self.skipTest(f"{package} is not installed")
        model = make()
        taken, others = choose_blocks(model)
        self.assertEqual({name: len(modules) for name, modules in taken.items()}, expected)
        self.assertEqual(next(iter(others), None), first_passed_over)
        return model

    def compare_step(self, model, step):
        def train(around):
            with around():
                loss = step()
            loss.backward()
            return loss

        self.compare(model, train, self.plans_of(model, step, ["full", "save_mm"]), leaves=False, draws=True)

    def test_layers_of_attention_and_state_spaces(self):
        model = self.assert_found(jamba, {"model.layers": 4})
        ids = torch.randint(0, 64, (2, 8))
        self.compare_step(model, lambda: model(input_ids=ids, labels=ids).loss)

    def test_an_encoder_and_a_decoder_of_transformers(self):
        model = self.assert_found(t5, {"encoder.block": 2, "decoder.block": 2}, "encoder.block.0.layer")
        ids = torch.randint(0, 64, (2, 8))
        self.compare_step(model, lambda: model(input_ids=ids, labels=ids).loss)

    def test_stages_with_blocks(self):
        model = self.assert_found(swin, {"swin.encoder.layers": 2}, "swin.encoder.layers.0.blocks")
        pixels = torch.randn(2, 3, 32, 32)
        step = lambda: model(pixel_values=pixels, labels=torch.arange(2)).loss  # noqa: E731
        self.compare_step(model, step)
        with contextlib.redirect_stderr(io.StringIO()) as words:
            rematch.auto(model, step, budget="1GiB", device="h100")
        self.assertIn("the layers are swin.encoder.layers (2); other lists: swin.encoder.layers.0.blocks", words.getvalue())

    def test_lists_of_other_models(self):
        self.assert_found(whisper, {"model.encoder.layers": 2, "model.decoder.layers": 3})
        self.assert_found(nemotron_h, {"model.layers": 4})
        self.assert_found(gpt_oss, {"model.layers": 2})
        self.assert_found(conv_next, {"convnext.encoder.stages": 4}, "convnext.encoder.stages.0.layers")

    def test_lists_of_diffusers(self):
        self.assert_found(conditional_u_net, {"down_blocks": 2, "up_blocks": 2, "mid_block": 1}, "up_blocks.0.resnets")
        self.assert_found(autoencoder, {"encoder.down_blocks": 2, "encoder.mid_block": 1, "decoder.up_blocks": 2,
                                        "decoder.mid_block": 1}, "encoder.mid_block.resnets")


class ContainersTest(Case):
    def test_points_of_a_search_with_a_container_that_is_only_iterated(self):
        stages = [Chain(lambda chain: chain.parts, parts=Sequential(*layers(2))) for _ in range(2)]
        for stage in stages:
            stage.forward = lambda x, parts=stage.parts: functools.reduce(lambda y, part: part(y), parts, x)
        model = Chain(lambda chain: chain.stages, stages=ModuleList(stages))
        blocks = {"stages": stages}
        trace = rematch.trace(model, lambda: model(self.x), blocks=blocks)
        points = rematch.search(trace, device="h100", optimizer="none", points=12)["points"]
        begun = {region["first_scope"] for point in points for region in point["plan"]["regions"]}
        self.assertTrue(any(scope.startswith("stages.0.parts.") for scope in begun), begun)
        for point in points:
            found = rematch.check(model, lambda: model(self.x), rematch.Checkpoint(point["plan"]), blocks=blocks)
            self.assertTrue(found["bits_equal"])
            self.assertEqual(found["checkpointed"]["executed_ops"]["recompute"], point["predicted_recomputed_ops"])


class WrappedTest(Case):
    def test_data_parallel_wrappers(self):
        model = of_list(layers(2))
        wrapped = torch.nn.DataParallel(model)
        self.assertEqual(choose_blocks(wrapped), choose_blocks(model))

    def test_layers_that_are_wrapped_one_by_one(self):
        class Wrapper(torch.nn.Module):
            """Wraps a module like FullyShardedDataParallel, but needs no process group."""

            def __init__(self, module):
                super().__init__()
                self._fsdp_wrapped_module = module

            def forward(self, x):
                return self._fsdp_wrapped_module(x)

        model = of_list(layers(3))
        checkpoint = rematch.Checkpoint(rematch.resolve(rematch.trace(model, lambda: model(self.x)), "full"))
        inside = list(model.layers)
        for index, layer in enumerate(inside):
            layer.feed_forward = Wrapper(layer.feed_forward)
            model.layers[index] = Wrapper(layer)
        wrapped = Wrapper(model)
        self.assertEqual(rematch.find_blocks(wrapped), {"layers": inside})
        self.assertTrue(rematch.check(wrapped, lambda: wrapped(self.x), checkpoint)["bits_equal"])
        self.assert_governed(wrapped, ["layers.0", "layers.1", "layers.2"])
        self.assert_governed(wrapped, ["mine.0", "mine.1", "mine.2"], blocks={"mine": list(model.layers)})

    @unittest.skipUnless(importlib.util.find_spec("peft") and importlib.util.find_spec("transformers"),
                         "peft or transformers is not installed")
    def test_adapters(self):
        from peft import LoraConfig, get_peft_model
        from zoo import llama

        model, step = llama()
        model = get_peft_model(model, LoraConfig(target_modules=["q_proj", "v_proj"]))
        self.assertEqual([len(modules) for modules in rematch.find_blocks(model).values()], [model.config.num_hidden_layers])
        checkpoint = rematch.Checkpoint(rematch.resolve(rematch.trace(model, step), "full"))
        self.assertTrue(rematch.check(model, step, checkpoint)["bits_equal"])


class AutoTest(Case):
    def said_by_auto(self, model):
        words = io.StringIO()
        with contextlib.redirect_stderr(words):
            rematch.auto(model, lambda: model(self.x), budget="1GiB", device="h100")
        return words.getvalue()

    def test_names_the_chosen_lists_if_there_are_others(self):
        words = self.said_by_auto(u_net())
        self.assertIn("the layers are down (2), up (2), middle (1); other lists: down.0.resnets, down.1.resnets "
                      "and 3 more.", words)
        self.assertIn("blocks={name: list(model.get_submodule(name).children()) for name in ['down.0.resnets']}", words)

    def test_is_silent_if_there_is_no_choice(self):
        self.assertNotIn("the layers are", self.said_by_auto(of_list(layers(2))))


if __name__ == "__main__":
    unittest.main()
