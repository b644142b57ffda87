"""Loads a user's model from a Python file that defines make()."""

import importlib.util
import pathlib
import sys

CONTRACT = ("MODEL_FILE is a Python file that defines make(): it returns the model and a function without arguments that "
            "runs one forward pass and returns the loss")


class Refused(Exception):
    """Raised if a user's input is invalid. The message says what is allowed."""


def load_make(path):
    """Returns the file's make(). The file may import modules from its own folder."""
    path = pathlib.Path(path).resolve()
    if not path.is_file():
        raise Refused(f"{path} is not a file; {CONTRACT}")
    sys.path.insert(0, str(path.parent))
    module = _module_of(path, "rematch_model_file")
    if not callable(getattr(module, "make", None)):
        raise Refused(f"{path} does not define make(); {CONTRACT}")
    return module.make


def load_exported(path):
    """Loads a file that `rematch export --to torch` has written, as a module with apply(model)."""
    path = pathlib.Path(path).resolve()
    if not path.is_file():
        raise Refused(f"{path} is not a file; create it with rematch export PLAN --to torch")
    module = _module_of(path, "rematch_exported_plan")
    if not callable(getattr(module, "apply", None)):
        raise Refused(f"{path} does not define apply(model); create it with rematch export PLAN --to torch")
    return module


def _module_of(path, name):
    """Loads the module from its source, because Python's bytecode cache may miss that a file was just rewritten."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), module.__dict__)
    return module
