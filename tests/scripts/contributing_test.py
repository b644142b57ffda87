"""Tests that the recipes of CONTRIBUTING.md are true: each named file exists and contains the named example."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# Maps each recipe to an existing example, or to None. The test replaces NAME in the recipe's file paths by the name of
# the example.
COPIED = {"Add a policy": None, "Add a model family": "moe", "Add a fused kernel": "silu_mul", "Add a report field": None,
          "Add a command": "render"}
ITEM = re.compile(r"\d+\. (?P<files>`[^:]+`): (?P<why>.+) See `(?P<thing>[^`]+)`\.")


def recipes():
    """Returns {heading: its numbered items, each on one line}."""
    parts = re.split(r"^### (.+)$", TEXT, flags=re.MULTILINE)[1:]
    return {heading: [" ".join(item.split()) for item in re.findall(r"^\d+\. (?:.+\n)(?:   .+\n)*", body, re.MULTILINE)]
            for heading, body in zip(parts[::2], parts[1::2])}


def problems_of(heading, item, root=ROOT):
    """Returns the problems of one item of a recipe."""
    match = ITEM.fullmatch(item)
    if match is None:
        return [f"{item!r} is not of the form: `FILES`: why. See `THING`."]
    problems = []
    for name in re.findall(r"`([^`]+)`", match["files"]):
        if "NAME" in name and COPIED[heading] is None:
            problems.append(f"{name}: the recipe names nothing to replace NAME")
            continue
        path = root / name.replace("NAME", COPIED[heading] or "")
        found = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else []
        word = re.compile(rf"(?<!\w){re.escape(match['thing'])}")
        if not found:
            problems.append(f"{name} does not exist")
        elif not any(word.search(each.read_text(encoding="utf-8")) for each in found):
            problems.append(f"{name} does not contain {match['thing']}")
    return problems


class RecipesTest(unittest.TestCase):
    def test_the_five_recipes_exist(self):
        self.assertEqual(list(recipes()), list(COPIED))
        for heading, items in recipes().items():
            self.assertGreaterEqual(len(items), 5, heading)
            self.assertEqual([int(item.split(".")[0]) for item in items], list(range(1, len(items) + 1)), heading)

    def test_every_file_exists_and_contains_its_example(self):
        for heading, items in recipes().items():
            for item in items:
                with self.subTest(heading, item=item[:60]):
                    self.assertEqual(problems_of(heading, item), [])

    def test_a_wrong_item_is_found(self):
        for item, problem in (("1. `policies/nowhere.cpp`: add it. See `attn_only`.", "does not exist"),
                              ("1. `policies/plan/plan.cpp`: add it. See `attn_only`.", "does not contain attn_only"),
                              ("1. `models/families/NAME.cpp`: add it. See `moe`.", "names nothing to replace NAME"),
                              ("1. `policies/plan/plan.cpp`: add it.", "not of the form")):
            self.assertRegex(" ".join(problems_of("Add a policy", item)), problem)

    def test_every_other_path_and_link_exists(self):
        named = re.findall(r"`((?:\w+/)+[\w.]*)`|\]\(([^)#]+)", TEXT)
        self.assertGreater(len(named), 30)
        for path in {path or link for path, link in named}:
            for copied in COPIED.values() if "NAME" in path else [""]:
                if copied is not None and (ROOT / path.replace("NAME", copied)).exists():
                    break
            else:
                self.fail(f"{path} does not exist")


class PolicyRecipeTest(unittest.TestCase):
    """Every policy that the recipe's test lists is defined in the catalogue's sources."""

    def test_every_listed_policy_is_defined_in_the_named_folder(self):
        listed = (ROOT / "tests/policies/catalogue/parse_policy_test.cpp").read_text(encoding="utf-8")
        listed = re.search(r"names ==\s+std::vector<std::string>\{(.+?)\}\)", listed, re.DOTALL)[1]
        sources = "".join(path.read_text(encoding="utf-8") for path in sorted(
            (ROOT / "policies/catalogue/families").glob("*.cpp")))
        names = re.findall(r'"([^"]+)"', listed)
        self.assertGreater(len(names), 30)
        for name in names:
            self.assertIn(f'{{"{name}"', sources)


class BuildTest(unittest.TestCase):
    def test_commands_of_the_build_exist(self):
        for preset in ("dev", "lite"):
            listed = subprocess.run(["cmake", "--list-presets=all"], cwd=ROOT, capture_output=True, text=True, check=True)
            self.assertIn(f'"{preset}"', listed.stdout)
        for script in re.findall(r"\bscripts/[\w.]+", TEXT):
            self.assertTrue((ROOT / script).exists(), script)


if __name__ == "__main__":
    unittest.main()
