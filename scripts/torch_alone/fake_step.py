"""Steps on fake tensors that run the ops of a step with data."""

import contextlib
import sys

# transformers looks whether a tensor is fake, and then builds an explicit attention mask, since it cannot ask whether
# one is needed. For a batch that is not packed and has no padding none is.
WITHOUT_DATA = {"transformers.masking_utils": {"is_tracing": lambda *_: False, "is_torchdynamo_exporting": lambda: False,
                                               "find_packed_sequence_indices": lambda *_: None}}


@contextlib.contextmanager
def as_with_data():
    """After the model was made, which imports the packages."""
    replaced = []
    for name, functions in WITHOUT_DATA.items():
        module = sys.modules.get(name)
        for attribute, function in functions.items():
            if hasattr(module, attribute):
                replaced.append((module, attribute, getattr(module, attribute)))
                setattr(module, attribute, function)
    try:
        yield
    finally:
        for module, attribute, function in replaced:
            setattr(module, attribute, function)
