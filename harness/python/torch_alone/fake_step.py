"""Makes steps on fake tensors run the same ops as steps on real tensors."""

import contextlib
import sys

# Functions of the package transformers and their replacements. Without the replacements, transformers would build an
# attention mask for fake tensors, even if the batch needs none.
WITHOUT_DATA = {"transformers.masking_utils": {"is_tracing": lambda *_: False, "is_torchdynamo_exporting": lambda: False,
                                               "find_packed_sequence_indices": lambda *_: None}}


@contextlib.contextmanager
def as_with_data():
    """A context manager that installs the replacements. Enter it after making the model, because only modules that are
    already imported are changed."""
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
