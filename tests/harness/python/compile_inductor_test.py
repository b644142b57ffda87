"""Tests models that Inductor compiles for the CPU. Inductor's kernels round differently from eager kernels, so losses
and gradients are compared with a tolerance."""

import copy
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

import rematch
import torch
from stack import Layer, Stack, results_of
from torch._functorch import config as functorch_config

FROM_CACHE = pathlib.Path(__file__).with_name("compiled_from_cache.py")
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-6, 1e-5


class InductorTest(unittest.TestCase):
    def test_losses_gradients_and_recomputed_ops(self):
        torch.manual_seed(0)
        model = Stack(num_layers=2)
        expected = results_of(model)
        torch._dynamo.reset()
        compiled = copy.deepcopy(model)
        partitioner = rematch.partitioner("full")
        compiled.compile(options=partitioner.inductor_options())
        with functorch_config.patch(enable_autograd_cache=False):  # a graph from the cache is not partitioned again
            loss, *gradients = results_of(compiled)
        self.assertLess(abs(float(loss - expected[0])), LOSS_TOLERANCE)
        for gradient, reference in zip(gradients, expected[1:], strict=True):
            self.assertLess(float((gradient - reference).norm()), GRADIENT_TOLERANCE * float(reference.norm()) + 1e-9)
        (option,) = partitioner.chosen
        self.assertGreater(option.num_recomputed, 0)

    def test_dropout_draws_the_numbers_of_pytorchs_partitioner(self):
        torch.manual_seed(0)
        model = Stack(lambda: Layer(dropout=0.5), num_layers=1)
        found = []
        for policy in (None, "none", "full"):
            torch._dynamo.reset()
            compiled = copy.deepcopy(model)
            compiled.compile(options={"custom_partitioner_fn": rematch.partitioner(policy)} if policy else {})
            torch.manual_seed(7)
            found.append(results_of(compiled))
        for reference, *results in zip(*found, strict=True):
            for result in results:
                self.assertLess(float((result - reference).norm()), GRADIENT_TOLERANCE * float(reference.norm()) + 1e-9)

    def test_caches_pickle_the_partitioner_by_its_hash(self):
        full = rematch.partitioner("full")
        self.assertIn(full.uuid().encode(), pickle.dumps(full))
        self.assertNotEqual(pickle.dumps(full), pickle.dumps(rematch.partitioner("save_mm")))

    def test_another_process_compiles_from_the_cache_with_the_same_plan(self):
        def compiled(budget):
            done = subprocess.run([sys.executable, FROM_CACHE, budget], capture_output=True, text=True, check=False,
                                  env=os.environ | {"TORCHINDUCTOR_CACHE_DIR": folder, "OMP_NUM_THREADS": "1"})
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)
            return found["hash"], {name: found["autograd"].get(f"autograd_cache_{name}", 0) for name in ("miss", "hit")}

        with tempfile.TemporaryDirectory() as folder:
            plan, counts = compiled("170KiB")
            self.assertEqual(counts, {"miss": 1, "hit": 0})
            self.assertEqual(compiled("170KiB"), (plan, {"miss": 0, "hit": 1}))
            other, counts = compiled("1GiB")
            self.assertNotEqual(other, plan)
            self.assertEqual(counts, {"miss": 1, "hit": 0})


if __name__ == "__main__":
    unittest.main()
