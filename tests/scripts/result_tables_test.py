"""Tables of measured figures are made only from reports and are up to date, and READMEs quote only figures from these
tables."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from tables import blocks, evidence, quotes, tables  # noqa: E402

SCRIPT = ROOT / "scripts/result_tables"


def point(policy="none", ops="eager", step_ns=200_000_000, **changes):
    identity = {"dimensions": {"batch": 4, "tokens": 2048}, "ops": ops, "attention_backend": "flash",
                "allocator": "cuda"}
    time = {"step_median_ns": step_ns, "samples_ns": [[step_ns, step_ns], [step_ns]], "attention_backend": "cudnn",
            "step_ratio": {"reference": "none", "ratio": 1.25, "interval": [1.2, 1.3]},
            "peak_allocated_bytes": 5_000_000_000, "peak_reserved_bytes": 6_000_000_000}
    return {"model": "llama3_1b", "policy": policy, "schedule": "on_demand", "status": "ok", "identity": identity,
            "time": time, "memory": None, "model_flops_utilization_ratio": 0.4321, **changes}


def run_report(*points, uuid="GPU-1"):
    return {"schema": "rematch.report/1.9", "environment": {"device": "NVIDIA H100", "device_uuid": uuid},
            "points": list(points)}


def pytorch_report(uuid="GPU-1"):
    turn = {"round": 0, "status": "ok", "reason": None, "peak_allocated_bytes": 7_000_000_000,
            "peak_reserved_bytes": None}
    rival = {"policy": "none", "status": "ok", "reason": None, "compile": None}
    compiled = {"form": "compile(block), one graph", "first_step_seconds": 9.87, "graph_breaks": 0}
    return {"format": 2, "torch": "2.11.0", "attention_backend": "cudnn",
            "settings": {"model": "llama3_1b", "dimensions": {"batch": 4, "tokens": 2048}, "deterministic": False},
            "environment": {"device": "NVIDIA H100", "device_uuid": uuid},
            "rivals": [{**rival, "variant": "eager"}, {**rival, "variant": "compile", "compile": compiled},
                       {**rival, "variant": "compile", "policy": "full", "status": "failed",
                        "reason": "Unsupported:\n a | b"}],
            "turns": [{**turn, "variant": "eager", "policy": "none", "samples_ns": [250_000_000]},
                      {**turn, "variant": "compile", "policy": "none", "samples_ns": [160_000_000]}],
            "rematch": [{"policy": "none", "schedule": "on_demand", "ops": "eager", "status": "ok",
                         "time": {"step_median_ns": 200_000_000, "samples_ns": [[200_000_000]],
                                  "attention_backend": "cudnn", "peak_allocated_bytes": 5_000_000_000},
                         "memory": None}]}


def verdict(name, words=(), tail="", findings=(), **changes):
    return {"stage": name, "what": "made up", "source_sha256": "0123456789", "status": "passed", "dry": False,
            "commands": [{"command": list(words), "tail": tail}], "findings": list(findings),
            "device": "NVIDIA H100 80GB HBM3", **changes}


class TablesTest(unittest.TestCase):
    def made(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            card = pathlib.Path(folder) / "h100"
            card.mkdir()
            for name, document in files.items():
                (card / f"{name.replace('__', '.')}.json").write_text(json.dumps(document))
            return tables.make_all(evidence.read(folder))

    def test_a_whole_report_becomes_rows(self):
        lost = {"peak_requested_bytes": 10, "predicted_peak_requested_bytes": 8, "workspace_bytes": 2,
                "peak_allocated_bytes": 11, "peak_reserved_bytes": 12}
        made = self.made(times__report=run_report(point()), exact__report=run_report(
            point(time=None, memory=lost), point("full", status="oom", time=None)))
        self.assertEqual(made["steps"].rows["h100/times, none, eager, on_demand"], [
            "H100", "llama3_1b", "4 x 2,048", "none", "eager", "cudnn", "200.0", "3", "1.250 (1.200 to 1.300) of none",
            "43.2 %", "5,000,000,000", "6,000,000,000", "`h100/times`"])
        self.assertEqual(list(made["steps"].rows), ["h100/times, none, eager, on_demand"])
        self.assertEqual(made["peaks"].rows["h100/exact, none, eager, on_demand"][5:9], ["10", "10", "11", "12"])

    def test_small_models_and_the_dry_device_are_left_out(self):
        dry = run_report(point())
        dry["environment"]["device"] = "dry h100 (no kernel runs)"
        made = self.made(small__report=run_report(point(model="llama_small")), dry=verdict("dry", dry=True),
                         dry__report=dry)
        self.assertEqual((made["steps"].rows, made["measurements"].rows), ({}, {}))
        self.assertEqual(made["steps"].markdown(), "No report contains figures for this table yet.")

    def test_rivals_are_compared_with_eager_and_fused_ops_of_the_same_card(self):
        files = {"pytorch_llama__report": pytorch_report(), "fused__report": run_report(point(ops="fused",
                                                                                             step_ns=140_000_000))}
        rows = self.made(**files)["beside_pytorch"].rows
        self.assertEqual(rows["h100/pytorch_llama, none, eager, on_demand"][4:12], [
            "200.0", "250.0", "0.800", "160.0", "1.250", "5,000,000,000", "7,000,000,000", "7,000,000,000"])
        self.assertEqual(rows["h100/pytorch_llama, none, fused, on_demand"][4:9],
                         ["140.0", "250.0", "0.560", "160.0", "0.875"])
        files["fused__report"] = run_report(point(ops="fused"), uuid="GPU-2")
        self.assertEqual(list(self.made(**files)["beside_pytorch"].rows), ["h100/pytorch_llama, none, eager, on_demand"])

    def test_rivals_that_failed_are_named(self):
        rows = self.made(pytorch_llama__report=pytorch_report())["rivals"].rows
        self.assertEqual(rows["h100/pytorch_llama, compile, none"][3:7], ["ok", "compile(block), one graph", "9.9", "0"])
        self.assertEqual(rows["h100/pytorch_llama, compile, full"][3], "failed: Unsupported: a b")

    def test_figures_of_lost_reports_are_marked(self):
        words = "rematch run --model llama3_1b --batch 4 --tokens 2048".split()
        findings = ["full, on_demand: ok, requested 10 B, predicted 10 B, allocated 11 B, reserved 12 B, 64 attention "
                    "forward kernels, step 229264811 ns"]
        tail = ("full       on_demand      16/16/16  113/96/226  28.5 GiB  backward loss    -31 %  1.20 [1.16 1.24]  "
                "29.7 %  equal\nTimes use cudnn attention, which LibTorch chooses on this card")
        made = self.made(llama=verdict("llama", words, tail, findings))
        self.assertEqual(made["steps"].rows["h100/llama, full, eager, on_demand"], [
            "H100", "llama3_1b", "4 x 2,048", "full", "eager", "cudnn", "229.3", "", "1.20 (1.16 to 1.24) of none", "29.7 %",
            "", "", "`h100/llama`, report not kept"])
        self.assertEqual(made["peaks"].rows["h100/llama, full, eager, on_demand"][5:9], ["10", "10", "11", "12"])
        # If a report was kept, its points replace the printed rows for the same points.
        made = self.made(llama=verdict("llama", words, tail, findings), times__report=run_report(point("full")))
        self.assertEqual(list(made["steps"].rows), ["h100/times, full, eager, on_demand"])
        self.assertEqual(list(made["peaks"].rows), ["h100/llama, full, eager, on_demand"])

    def test_a_narrowed_model_is_not_full_size(self):
        narrow = point()
        narrow["identity"]["dimensions"]["dim"] = 64
        words = "rematch run --model llama3_1b --dim 64 --tokens 64".split()
        findings = ["full, on_demand: ok, requested 10 B, predicted 10 B, allocated 11 B, reserved 12 B, 64 attention "
                    "forward kernels, step 9 ns"]
        made = self.made(counts__report=run_report(narrow), counts=verdict("counts", words, "", findings))
        self.assertEqual((made["steps"].rows, made["peaks"].rows), ({}, {}))

    def test_kernels_ceilings_and_measurements(self):
        lines = ["rope: 2714 GB/s of least bytes, 0.81 of the card's 3350",
                 "rms_norm backward: 2604 GB/s of least bytes, 0.78 of the card's 3350"]
        made = self.made(
            bandwidth=verdict("bandwidth", tail="All tests passed (9 assertions in 1 test case)", findings=lines),
            overhead=verdict("overhead", findings=["full: 1.288 of none's step [0.04039919, 41.06554226]"],
                             commit="abcdef0123", date="2026-11-27"),
            ceilings__report={"device": "NVIDIA H100", "copy_gb_per_second": 3001.4, "matmul_tflop_per_second": 797.6})
        self.assertEqual([row[1:4] for row in made["bandwidth"].rows.values()],
                         [["2714", "0.81", "met"], ["2604", "0.78", "missed"]])
        self.assertEqual(made["ceilings"].rows["h100/ceilings"][1:3], ["3,001", "798"])
        self.assertEqual(made["measurements"].rows["h100/bandwidth"][2:],
                         ["passed: 9 assertions in 1 test case", "tree 01234567"])
        self.assertEqual(made["measurements"].rows["h100/overhead"][2:],
                         ["passed: full: 1.288 of none's step [0.0404, 41.1]", "abcdef01, 2026-11-27"])

    def test_predicted_steps_are_compared_with_measured_ones(self):
        entry = {"model": "llama3_1b", "size": "4 x 2,048", "profile": "profile.report.json"}
        rows = self.made(
            times__report=run_report(point(), point("full", step_ns=250_000_000)),
            predicted={"predictions": [
                {**entry, "policy": "none", "predicted_by_profile_ns": 198_000_000,
                 "predicted_by_rates_ns": 205_000_000, "predicted_by_data_sheet_ns": 120_000_000},
                {**entry, "policy": "full", "predicted_by_profile_ns": 251_000_000,
                 "predicted_by_rates_ns": 260_000_000, "predicted_by_data_sheet_ns": 150_000_000},
                {**entry, "policy": "save_mm", "predicted_by_profile_ns": 1, "predicted_by_rates_ns": 1,
                 "predicted_by_data_sheet_ns": 1}]}
        )["predicted"].rows
        self.assertEqual(list(rows), ["H100, llama3_1b, 4 x 2,048, none", "H100, llama3_1b, 4 x 2,048, full"])
        self.assertEqual(rows["H100, llama3_1b, 4 x 2,048, full"][4:],
                         ["250.0", "251.0", "+0.4 %", "260.0", "+4.0 %", "150.0", "-40 %", "1.250", "1.250"])

    def test_measured_plans_of_a_front(self):
        def plan(policy, status="ok"):
            measured = {"status": status, "peak_allocated_bytes": 2000, "step_time_ns": 200_000_000,
                        "step_time_interval_ns": [198_000_000, 203_000_000]}
            return {"policy": policy, "predicted_peak_allocated_bytes": 1000, "predicted_step_time_ns": 199_000_000,
                    "measured": measured if status else None}

        front = {"schema": "rematch.front/1.0", "model": "llama3_1b", "dimensions": {"batch": 4, "tokens": 2048},
                 "points": [plan("search(0)"), plan("search(1)", None), plan("none")],
                 "baselines": [plan("none"), plan("full", "oom")]}
        rows = self.made(front__report=front)["fronts"].rows
        self.assertEqual(list(rows), ["h100/front, search(0)", "h100/front, none"])
        self.assertEqual(rows["h100/front, none"][4:], ["1,000", "2,000", "199.0", "200.0", "198.0 to 203.0", "-0.5 %", "`h100/front`"])

    def test_a_deviation_is_quoted_without_its_sign(self):
        self.assertTrue(quotes.is_rounded("1.4 %", "-1.4 %"))
        self.assertFalse(quotes.is_rounded("1.3 %", "-1.4 %"))

    def test_the_published_run_is_compared_with_ours(self):
        def wan(policy, tokens, step_ns, ops="eager", attention="cudnn"):
            identity = {"dimensions": {"batch": 1, "tokens": tokens}, "ops": ops}
            made = point(policy, step_ns=step_ns, model="wan_1_3b", identity=identity)
            made["time"]["attention_backend"] = attention
            return made
        made = self.made(
            wan__report=run_report(wan("full", 31200, 2_800_000_000), wan("attn_only", 31200, 2_500_000_000),
                                   wan("full", 72000, 9_900_000_000, "fused")),
            flash__report=run_report(wan("full", 31200, 9_000_000_000, attention="flash")))
        rows = made["published_wan"].rows
        self.assertEqual(rows["step, full"],
                         ["step, full", "4.19 s", "2.80 s", "not measured", "not measured", "9.90 s"])
        self.assertEqual(rows["step, attn_only over full"][1:3], ["0.895", "0.893"])
        self.assertEqual(rows["peak, full"][2], "5.00 GB")


class BlocksTest(unittest.TestCase):
    TABLES = {"steps": tables.Table(["a"], {"x": ["1"]})}

    def test_filling_a_block_twice_changes_nothing(self):
        text = "before\n<!-- table: steps -->\nstale\n<!-- end -->\nafter\n"
        filled, problems = blocks.fill(text, self.TABLES)
        self.assertEqual(problems, [])
        self.assertEqual(filled, "before\n<!-- table: steps -->\n\n| a |\n| --- |\n| 1 |\n\n<!-- end -->\nafter\n")
        self.assertEqual(blocks.fill(filled, self.TABLES), (filled, []))

    def test_unknown_tables_and_blocks_without_an_end_are_problems(self):
        for text, said in (("<!-- table: no -->\n<!-- end -->\n", "no table has the name no"),
                           ("<!-- table: steps -->\n", "has no <!-- end -->")):
            filled, problems = blocks.fill(text, self.TABLES)
            self.assertEqual(filled, text)
            self.assertIn(said, problems[0])

    def test_rows_outside_of_blocks_are_found(self):
        text = "| a |\n<!-- table: steps -->\n| b |\n<!-- end -->\n| c |\n"
        self.assertEqual(blocks.hand_made_rows(text), [1, 5])


class QuotesTest(unittest.TestCase):
    TABLES = {"steps": tables.Table(["step, ms", "peak", "MFU"], {"llama": ["190.95", "44,356,399,696", "35.6 %"]})}
    TEXT = "On one H100 a step takes 191 ms.\n\nElsewhere it takes 5 s.\n"

    def problems(self, text, *entries):
        return quotes.problems_of_quotes({"README.md": text}, [{"file": "README.md", **entry} for entry in entries],
                                         self.TABLES)

    def entry(self, figure="191 ms", column="step, ms", text="a step takes 191 ms", row="llama"):
        return {"text": text, "cells": [[figure, "steps", row, column]]}

    def test_a_figure_without_a_source_is_a_problem(self):
        self.assertEqual(self.problems(self.TEXT), ["README.md:1: '191 ms' has no source in quoted_figures.json"])
        self.assertEqual(self.problems(self.TEXT, self.entry()), [])
        self.assertEqual(self.problems(self.TEXT, {"text": "a step takes 191 ms", "not_of_a_gpu": "a guess"}), [])

    def test_a_figure_that_the_reports_do_not_have_is_a_problem(self):
        text = self.TEXT.replace("191", "185")
        wrong = self.entry("185 ms", text="a step takes 185 ms")
        self.assertEqual(self.problems(text, wrong),
                         ["README.md: 185 ms is 190.95 in the reports (steps, llama, step, ms)"])
        self.assertIn("no report has 191 ms", self.problems(self.TEXT, self.entry(row="gone"))[0])

    def test_an_entry_whose_sentence_is_gone_is_a_problem(self):
        self.assertIn("README.md does not say: a step takes 191 ms", self.problems("Nothing.\n", self.entry()))

    def test_figures_are_rounded_in_their_own_unit(self):
        self.assertTrue(quotes.is_rounded("0.19 s", "190.95"))
        self.assertTrue(quotes.is_rounded("44.4 GB", "44,356,399,696"))
        self.assertTrue(quotes.is_rounded("41.3 GiB", "44,356,399,696"))
        self.assertTrue(quotes.is_rounded("36 %", "35.6 %"))
        self.assertFalse(quotes.is_rounded("35 %", "35.6 %"))
        self.assertFalse(quotes.is_rounded("0.94", "0.951"))
        self.assertFalse(quotes.is_rounded("0.94", "not measured"))

    def test_rows_count_with_their_header_but_output_does_not(self):
        text = ("| what | CUDA |\n| --- | --- |\n| step | 0.94 of it |\n\n```\nH100 5 ms\n```\n\n"
                "LibTorch 2.11 has CUDA 13.0.\n")
        self.assertEqual(self.problems(text), ["README.md:3: '0.94' has no source in quoted_figures.json"])


class RepositoryTest(unittest.TestCase):
    def test_tables_are_up_to_date_and_readmes_quote_reports(self):
        done = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_stale_tables_are_reported_and_then_written(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "reports/results/gpu/h100").mkdir(parents=True)
            (root / "tests/scripts").mkdir(parents=True)
            (root / "tests/scripts/quoted_figures.json").write_text("[]")
            (root / "README.md").write_text("Nothing.\n")
            document = root / "reports/results/gpu.md"
            document.write_text("<!-- table: steps -->\n<!-- end -->\n")
            (root / "reports/results/gpu/h100/times.report.json").write_text(json.dumps(run_report(point())))
            runs = [subprocess.run([sys.executable, str(SCRIPT), "--root", folder, *words], capture_output=True,
                                   text=True) for words in (["--check"], [], ["--check"])]
            self.assertEqual([done.returncode for done in runs], [1, 0, 0])
            self.assertIn("its tables are stale", runs[0].stderr)
            self.assertIn("| llama3_1b | 4 x 2,048 | none |", document.read_text())
            document.write_text(document.read_text() + "| by hand | 5 ms |\n")
            done = subprocess.run([sys.executable, str(SCRIPT), "--root", folder, "--check"], capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("this table is not inside a generated block", done.stderr)


if __name__ == "__main__":
    unittest.main()
