"""Chooses a random model with consistent sizes. Every chosen model must run, even with sizes of 1."""

PRESETS = {
    "llama": ("llama_small", "llama3_1b", "llama3_8b"),
    "moe": ("moe_small", "llama4_17bx16e"),
    "deepseek": ("deepseek_small", "deepseek_v3_16b"),
    "wan": ("wan_small", "wan_1_3b"),
    "ltx": ("ltx_small", "ltx"),
}
ON_TEXT = ("llama", "moe", "deepseek")


class Extents:
    """Chooses random sizes. Each test case has its own probability of choosing the smallest allowed size."""

    def __init__(self, rng):
        self.rng = rng
        self.chance_of_least = rng.choice((0.0, 0.3, 0.6, 0.9))

    def __call__(self, *values):
        if self.rng.random() < self.chance_of_least:
            return min(values)
        return self.rng.choice(values)


def draw_model(rng):
    """Chooses a random model. Returns (family, command-line flags)."""
    family = rng.choice(tuple(PRESETS))
    extent = Extents(rng)
    flags = {"--model": rng.choice(PRESETS[family]), "--layers": extent(1, 2, 2, 3, 4)}
    flags.update(FAMILIES[family](rng, extent, flags["--layers"]))
    flags["--batch"] = extent(1, 2, 3)
    if rng.random() < 0.35:
        flags["--dtype"] = "bfloat16"
    if rng.random() < 0.4:
        flags["--ops"] = rng.choice(("fused", "fused", "eager"))
    if rng.random() < 0.3:
        flags["--dropout-percent"] = rng.choice((1, 10, 50, 90))
    return family, {flag: str(value) for flag, value in flags.items()}


def text(rng, extent):
    return {"--vocab": extent(256, 257, 300), "--tokens": extent(1, 2, 7, 16, 33),
            "--ffn": extent(1, 3, 16, 40)}


def grouped_heads(rng, extent, multiple=1):
    """Chooses random numbers of heads and key-value heads, and a random total width. The number of key-value heads
    divides the number of heads. The width of a head is even, and the total width is a multiple of `multiple`."""
    heads = extent(1, 2, 3, 4)
    width = extent(2, 4, 8, 6)
    while heads * width % multiple:
        width *= 2
    return {"--heads": heads, "--dim": heads * width,
            "--kv-heads": extent(*(n for n in range(1, heads + 1) if heads % n == 0))}


def experts(rng, extent):
    number = extent(1, 2, 3, 5)
    return {"--experts": number, "--top-k": extent(*range(1, number + 1)),
            "--expert-ffn": extent(8, 16), "--shared-ffn": extent(1, 5, 24)}


def llama(rng, extent, layers):
    flags = {**grouped_heads(rng, extent), **text(rng, extent)}
    if rng.random() < 0.5:
        flags["--tied"] = rng.choice((0, 1))
    partly = rng.random()
    if partly < 0.15:
        flags["--frozen-layers"] = rng.randrange(layers + 1)
    elif partly < 0.3:
        flags["--adapter-rank"] = extent(1, 2, 4)
    return flags


def moe(rng, extent, layers):
    return {**grouped_heads(rng, extent, multiple=8), **text(rng, extent), **experts(rng, extent),
            "--moe-every": rng.randint(1, layers)}


def deepseek(rng, extent, layers):
    nope, rope = extent(1, 2, 8), extent(2, 4)
    return {**text(rng, extent), **experts(rng, extent), "--dim": extent(8, 16, 32),
            "--heads": extent(1, 2, 3), "--latent-dim": extent(1, 4, 16), "--nope-dim": nope,
            "--rope-dim": rope, "--value-dim": extent(1, nope, nope + rope),
            "--dense-layers": rng.randrange(layers + 1)}


def dit(rng, extent, layers, pixels_per_token, frames_per_latent):
    heads = extent(1, 2, 3)
    flags = {"--heads": heads, "--dim": heads * extent(2, 4, 8, 16), "--ffn": extent(1, 3, 16, 40),
             "--text-tokens": extent(1, 2, 5), "--text-dim": extent(1, 3, 16),
             "--freq-dim": extent(2, 8), "--channels": extent(1, 2, 4)}
    frames, height, width = extent(1, 2, 3), extent(1, 2, 4), extent(1, 2, 3)
    spelling = rng.random()
    if spelling < 0.6:
        flags.update({"--frames": frames, "--height": height, "--width": width})
    elif spelling < 0.8:
        flags["--tokens"] = frames * height * width
    else:
        flags["--video"] = (f"{1 + (frames - 1) * frames_per_latent}x{height * pixels_per_token}"
                            f"x{width * pixels_per_token}")
    return flags


FAMILIES = {
    "llama": llama,
    "moe": moe,
    "deepseek": deepseek,
    "wan": lambda rng, extent, layers: dit(rng, extent, layers, 16, 4),
    "ltx": lambda rng, extent, layers: dit(rng, extent, layers, 32, 8),
}
