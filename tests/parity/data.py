"""Generates one batch of a model's data from hashed integers. Every number equals the number that models/data
generates."""

import pathlib

import numpy

from hash_init import (
    counters_from,
    fnv1a64,
    hash_to_signed_unit,
    splitmix64,
    splitmix64_of,
    to_tensor,
)

TEXT_FILE = pathlib.Path(__file__).resolve().parents[2] / "models" / "data" / "text.txt"

SHAPES = ["square", "disc", "diamond", "cross"]
DIRECTIONS = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]
NUM_COLOURS = 8
DRAWS_OF_SCENE = 8
NORMAL_SCALE = float.fromhex("0x1.3988e2p-16")


def stream_counter(seed, stream, step):
    return splitmix64_of(splitmix64_of(seed ^ fnv1a64(stream)) ^ step)


def hash_to_normal(counters):
    total = numpy.zeros(counters.shape, dtype=numpy.int32)
    for hashes in (splitmix64(counters), splitmix64(~counters)):
        for lane in range(4):
            total += ((hashes >> numpy.uint64(16 * lane)) & numpy.uint64(0xFFFF)).astype(
                numpy.int32
            )
    mean = numpy.int32(8 * 65535 // 2)
    return (total - mean).astype(numpy.float32) * numpy.float32(NORMAL_SCALE)


def hash_to_open_unit(hashes):
    odd = 2 * (hashes >> numpy.uint64(41)).astype(numpy.int32) + 1
    return odd.astype(numpy.float32) * numpy.float32(2.0**-24)


def text_batch(dimensions, seed, step):
    """Returns tokens and targets, int64 [batch * tokens]."""
    text = TEXT_FILE.read_bytes()
    batch, tokens = dimensions["batch"], dimensions["tokens"]
    counter = stream_counter(seed, "text", step)
    inputs, targets = [], []
    for row in range(batch):
        start = splitmix64_of(counter + row) % (len(text) - tokens)
        inputs.extend(text[start : start + tokens])
        targets.extend(text[start + 1 : start + tokens + 1])
    return [to_tensor(numpy.array(part, dtype=numpy.int64)) for part in (inputs, targets)]


def table_row(name, count):
    return hash_to_signed_unit(splitmix64(counters_from(fnv1a64(name), count)))


def circular_distance(extent, centre):
    distance = (numpy.arange(extent) - centre) % extent
    return numpy.minimum(distance, extent - distance)


def covers(shape, radius, dy, dx):
    if shape == 0:
        return numpy.maximum(dy, dx) <= radius
    if shape == 1:
        return dy * dy + dx * dx <= radius * radius
    if shape == 2:
        return dy + dx <= radius
    return (numpy.maximum(dy, dx) <= radius) & (numpy.minimum(dy, dx) <= radius // 3)


def shape_batch(dimensions, seed, step):
    """Returns latents, noise [batch, channels, frames, 2 height, 2 width], time [batch], text."""
    batch, channels, frames = (dimensions[n] for n in ("batch", "channels", "frames"))
    height, width = 2 * dimensions["height"], 2 * dimensions["width"]
    latents = numpy.empty((batch, channels, frames, height, width), dtype=numpy.float32)
    text_shape = (batch, dimensions["text_tokens"], dimensions["text_dim"])
    text = numpy.empty(text_shape, dtype=numpy.float32)
    background = numpy.float32(0.5) * table_row("background", channels)
    radius = max(1, min(height, width) // 4)
    counter = stream_counter(seed, "scene", step)
    for row in range(batch):
        extents = (len(SHAPES), len(DIRECTIONS), NUM_COLOURS, height, width)
        shape, direction, colour, top, left = (
            splitmix64_of(counter + DRAWS_OF_SCENE * row + draw) % extent
            for draw, extent in enumerate(extents)
        )
        inside = numpy.float32(2.0) * table_row(f"colour{colour}", channels)
        down, right = DIRECTIONS[direction]
        for frame in range(frames):
            dy = circular_distance(height, top + frame * down)[:, None]
            dx = circular_distance(width, left + frame * right)[None, :]
            covered = covers(shape, radius, dy, dx)[None]
            latents[row, :, frame] = numpy.where(
                covered, inside[:, None, None], background[:, None, None]
            )
        words = [SHAPES[shape], f"colour{colour}", f"direction{direction}"]
        for token in range(text_shape[1]):
            word = words[token] if token < len(words) else "padding"
            text[row, token] = table_row("word " + word, text_shape[2])
    noise = hash_to_normal(counters_from(stream_counter(seed, "noise", step), latents.size))
    time = hash_to_open_unit(
        splitmix64(counters_from(stream_counter(seed, "time", step), batch))
    )
    return [to_tensor(part) for part in (latents, noise.reshape(latents.shape), time, text)]
