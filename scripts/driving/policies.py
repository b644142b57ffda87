"""Chooses random policies from `rematch list` and `rematch list --systems`, with random arguments. Also writes random
policy files, whose selectors name ops and scopes of the model under test."""

import re

from driving.tool import Failed

# In policy names of other systems, a single upper-case letter is a placeholder for a value.
HOLE = re.compile(r"(?<=[=(])[A-Z](?=[,)])")
# Selectors that match no op of these models. Some use the op names of other systems.
FOREIGN = ("aten::_scaled_dot_product_flash_attention", "rematch::attention", "norm", "random",
           "aten._scaled_dot_product_efficient_attention.default", "torch.ops.aten.mm.default",
           "_c10d_functional::reduce_scatter_tensor")
# Unusual file names that policy files get, regardless of their content.
NAMES = ("mine", 'a "quoted" name', "p\u00e9ter", "x(1)", "a/b", "..", "name, with a comma", "none",
         "full", "save_mm", "mine.json", "n" * 300)


def some(rng, values, most):
    return rng.sample(values, min(len(values), rng.randint(0, most)))


def count(rng, layers):
    return str(rng.randint(1, layers + (rng.random() < 0.1)))


def layer_list(rng, layers):
    indices = some(rng, range(layers + (rng.random() < 0.1)), layers)
    return "[" + ",".join(map(str, indices)) + "]"


def words_of(*values, most=3, brackets="{}"):
    return lambda rng, layers: brackets.replace("{}", ",".join(some(rng, values, most)))


def split(rng, layers):
    parts = ("none", "full", "sac_titan", "attn_only", "save_mm", "sac_titan_2025(deepseek_v3)")
    return f"attn: {rng.choice(parts)}, ffn: {rng.choice(parts)}"


def inner_policy(rng, layers):
    return rng.choice(("none", "full", "attn_only", "save_mm", "sac_titan", "nth_last(1)",
                       "segments(1)"))


def saved_and_recomputed(*values):
    lists = words_of(*values, brackets="[{}]")
    return lambda rng, layers: f"save={lists(rng, layers)}" + (
        f",recompute={lists(rng, layers)}" if rng.random() < 0.5 else "")


TITAN_REGIONS = ("attention.*", "attention.wo.*", "*", "*routed_experts.w13.*", "feed_forward.*")

# Maps a policy to a function that returns a random argument for it.
ARGUMENTS = {
    "sac_titan_excluding": words_of("attention.output", "self_attention.output", "moe.router.gate",
                                    "ffn", "head", brackets="[{}]"),
    "sac_titan_2025": lambda rng, layers: rng.choice(
        ("llama3", "qwen3", "llama4", "deepseek_v3", "gpt_oss")),
    "sac_modalities": words_of(
        "aten.mm", "ops.aten.mm.default", "aten._scaled_dot_product_flash_attention",
        "aten._scaled_dot_product_efficient_attention", "_c10d_functional.reduce_scatter_tensor",
        "aten.max", most=4),
    "sac_split": split,
    "recompute_modules": words_of("core_attn", "mlp", "moe", "shared_experts", "layernorm",
                                  "moe_act", "mla_up_proj", brackets="[{}]"),
    "full_except": words_of("attention_forward", "*.ffn::matmul#1", "*.attention.output::matmul",
                            "matmul", "*.ffn::result", "aten::mul.Tensor"),
    "keep_collectives": inner_policy,
    "reissue_collectives": inner_policy,
    "no_reshard": inner_policy,
    "offload_inputs": inner_policy,
    "offload_saved": inner_policy,
    "offload_modules": words_of("attn_norm", "qkv_linear", "core_attn", "attn_proj", "expert_fc1",
                                "moe_act", brackets="[{}]"),
    "remat": saved_and_recomputed("attention", "attention.core", "self_attention", "ffn", "ffn::matmul#1", "nowhere"),
    "remat_titan": saved_and_recomputed(*TITAN_REGIONS),
    "remat_custom": words_of("out_proj=device", "query_proj=offload", "context=device", "mlpwo=remat",
                             "moe_mlpwo=device"),
}
# Maps (policy, placeholder) to a function that returns a random value for the placeholder.
PARTS = {("remat_titan", letter): words_of(*TITAN_REGIONS, brackets="[{}]") for letter in "SR"}
PARTS["remat", "S"] = words_of("attention", "ffn", brackets="[{}]")
BY_FORM = {"": None, "(N)": count, "([I,...])": layer_list}


class Catalogue:
    """Chooses random policies from the lists that the binary prints: rematch's own policies, and the modes of other
    systems."""

    def __init__(self, tool):
        listed = tool.json("list", "--json")["policies"]
        self.forms = {entry["name"]: entry["parameters"] for entry in listed}
        self.systems = tool.json("list", "--systems", "--json")["modes"]
        unknown = [name for name, form in self.forms.items()
                   if form not in BY_FORM and name not in ARGUMENTS]
        if unknown:
            raise Failed(f"driving/policies.py has no arguments for {', '.join(unknown)}")

    def draw(self, rng, layers):
        """Returns a policy for a model of this many layers, as the user writes it. Occasionally it contains a value
        that is too large."""
        if rng.random() < 0.3:
            return self.draw_system(rng, layers)
        name = rng.choice(tuple(self.forms))
        arguments = self.arguments(name)
        return name if arguments is None else f"{name}({arguments(rng, layers)})"

    def draw_system(self, rng, layers):
        while True:
            entry = rng.choice(self.systems)
            if entry["policy"] is None and rng.random() < 0.8:
                # chosen rarely, because rematch rejects modes without an equivalent policy
                continue
            return HOLE.sub(lambda hole: self.value_of(hole[0], entry["policy"], rng, layers),
                            entry["mode"])

    def value_of(self, letter, policy, rng, layers):
        """Returns a value for the placeholder `letter`, which becomes all or a part of the policy's argument."""
        if policy and "{" + letter + "}" in policy:
            name = policy.split("(")[0]
            arguments = PARTS.get((name, letter)) or self.arguments(name)
            return arguments(rng, layers)
        return count(rng, layers)

    def arguments(self, name):
        return ARGUMENTS.get(name) or BY_FORM[self.forms[name]]


class FileDrawer:
    """Makes random policy files for one model. Their selectors name ops and scopes from the model's trace."""

    def __init__(self, rng, trace, layers):
        self.rng, self.layers = rng, layers
        # The path of a scope inside a block begins with a dot. The path of the block itself is ".".
        self.inner = sorted({scope["path"][1:] for part in trace["types"] for scope in part["scopes"]
                             if scope["path"].startswith(".")} - {""})
        self.ops = sorted({(part["scopes"][op["scope"]]["path"], op["name"], op["class"])
                           for part in trace["types"] for op in part["ops"]
                           if op["scope"] is not None and op["scope"] >= 0})

    def chance(self, share):
        return self.rng.random() < share

    def selector(self):
        """Returns a selector. Most selectors name an existing op and a scope that contains it."""
        path, name, op_class = self.rng.choice(self.ops)
        spellings = [name, op_class, "result"]
        if name.startswith("aten::"):
            bare = name.removeprefix("aten::")
            spellings += [name.split(".")[0], "torch.ops.aten." + bare + ("" if "." in bare else ".default")]
        op = self.rng.choice(FOREIGN) if self.chance(0.1) else self.rng.choice(spellings)
        if self.chance(0.5):
            if self.chance(0.1):
                path = "." + self.rng.choice(self.inner)
            op = f"{self.pattern(path)}::{op}"
        return f"{op}#{self.rng.choice((1, 1, 2, 4))}" if self.chance(0.25) else op

    def pattern(self, path):
        if not path.startswith("."):
            return path
        inner = path.removeprefix(".")
        layer = self.rng.choice(("*", "*", str(self.rng.randrange(self.layers))))
        return self.rng.choice((f"blocks.{layer}", f"blocks.{layer}.{inner}" if inner else "*",
                                f"*.{inner}" if inner else "blocks.*"))

    def selectors(self, least=0):
        return [self.selector() for _ in range(self.rng.randint(least, 3))]

    def blocks(self):
        kind = self.rng.choice(("all", "all", "none", "nth_first", "nth_last", "skip_nth", "first",
                                "last", "only", "except"))
        if kind in ("all", "none"):
            return kind
        if kind in ("only", "except"):
            return {kind: some(self.rng, range(self.layers), self.layers)}
        return {kind: self.rng.randint(1, self.layers)}

    def regions(self):
        kind = self.rng.choice(("block", "block", "root", "segments", "scopes", "scopes"))
        if kind == "segments":
            return {kind: self.rng.randint(1, self.layers)}
        if kind == "scopes":
            return {kind: some(self.rng, self.inner, 3) or ["*"]}
        return kind

    def draw(self):
        policy = {"schema": "rematch.policy/1.0", "name": self.rng.choice(NAMES)}
        if self.chance(0.5):
            policy["blocks"] = self.blocks()
        if self.chance(0.6):
            policy["regions"] = self.regions()
            if "scopes" in policy["regions"] and self.chance(0.3):
                policy["split_only_with"] = self.rng.choice(("moe", "ffn", "attention"))
        if self.chance(0.25):
            policy.update(inverse=True, recompute=self.selectors(1))
        else:
            policy["save"] = self.selectors()
            if self.chance(0.3):
                policy["alternate"] = self.alternation()
        if self.chance(0.3):
            policy["exclude"] = self.selectors()
        if self.chance(0.2):
            policy["offload"] = self.selectors(1)
        for key, share in (("exact_names", 0.2), ("early_stop", 0.5), ("no_effect_is_intended", 0.3)):
            if self.chance(share):
                policy[key] = self.chance(0.5)
        return policy

    def alternation(self):
        alternation = {"selectors": self.selectors(1), "keep": self.rng.choice(("odd", "even"))}
        if self.chance(0.5):
            alternation.update(exclude=self.selectors(), exclude_same_shapes=self.chance(0.5))
        return alternation
