"""Checks the committed schemas with Python's jsonschema, in draft 7 and in 2020-12. The verdicts must equal those of
`rematch validate`. Exit code 77: jsonschema is not installed."""

import json
import pathlib
import sys
import unittest

try:
    import jsonschema
except ImportError:
    print("skipped: no Python package jsonschema (Debian: python3-jsonschema)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = {path.name: json.loads(path.read_text()) for path in
           sorted((ROOT / "reports/schema").glob("*.schema.json"))}
FIXTURES = ROOT / "tests/reports/fixtures"
DRAFTS = (jsonschema.Draft7Validator, jsonschema.Draft202012Validator)

# Keywords with the same meaning in draft 7 and in 2020-12.
COMMON = set("""$schema title description type required properties additionalProperties definitions $ref
    items enum const pattern minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength
    minItems maxItems minProperties maxProperties oneOf anyOf allOf not""".split())


def registry_of(draft):
    """Returns a function that takes a schema, and returns the keyword arguments with which jsonschema resolves
    references to other schemas. Old versions of jsonschema need a different argument."""
    try:
        import referencing
        from referencing.jsonschema import DRAFT7, DRAFT202012
    except ImportError:
        base = "file:///schema/"
        store = {base + name: schema for name, schema in SCHEMAS.items()}
        return lambda schema: {"resolver": jsonschema.RefResolver(base, schema, store=store)}
    dialect = DRAFT7 if draft is jsonschema.Draft7Validator else DRAFT202012
    resources = [(name, referencing.Resource(contents=schema, specification=dialect))
                 for name, schema in SCHEMAS.items()]
    registry = referencing.Registry().with_resources(resources)
    return lambda schema: {"registry": registry}


def validator(draft, kind):
    schema = SCHEMAS[f"{kind}.schema.json"]
    return draft(schema, **registry_of(draft)(schema))


def first_error(draft, document):
    kind = document["schema"].split(".")[1].split("/")[0]
    errors = sorted(validator(draft, kind).iter_errors(document), key=lambda error: list(map(str, error.path)))
    return errors[0] if errors else None


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


def refuse_repeated(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("a key appears twice")
    return dict(pairs)


def load(path):
    return json.loads(path.read_text(), parse_constant=refuse_constant, object_pairs_hook=refuse_repeated)


class SchemasTest(unittest.TestCase):

    def test_each_schema_is_valid_in_both_drafts(self):
        for name, schema in SCHEMAS.items():
            for draft in DRAFTS:
                with self.subTest(schema=name, draft=draft.__name__):
                    draft.check_schema(schema)

    def test_no_schema_has_a_keyword_that_the_drafts_read_differently(self):
        for name, schema in SCHEMAS.items():
            with self.subTest(schema=name):
                self.check_common(schema)

    def check_common(self, schema):
        if isinstance(schema, bool):
            return
        self.assertLessEqual(set(schema), COMMON)
        self.assertNotIsInstance(schema.get("items"), list)
        if "$ref" in schema:  # draft 7 ignores other keys beside "$ref"
            self.assertLessEqual(set(schema), {"$ref", "description"})
        for key in ("properties", "definitions"):
            for inner in schema.get(key, {}).values():
                self.check_common(inner)
        for key in ("items", "additionalProperties", "not"):
            if key in schema:
                self.check_common(schema[key])
        for key in ("oneOf", "anyOf", "allOf"):
            for inner in schema.get(key, []):
                self.check_common(inner)

    def test_files_of_released_versions_fit(self):
        files = sorted((FIXTURES / "released").glob("*.json"))
        self.assertGreaterEqual(len(files), len(SCHEMAS))
        for path in [*files, FIXTURES / "point.json", *sorted((ROOT / "tests/golden").glob("*/compare.json")),
                     *sorted((ROOT / "tests/golden").glob("*/gate.json"))]:
            for draft in DRAFTS:
                with self.subTest(file=path.name, draft=draft.__name__):
                    self.assertIsNone(first_error(draft, load(path)))

    def test_bad_files_do_not(self):
        paths = sorted(FIXTURES.glob("bad_*.json"))
        self.assertGreaterEqual(len(paths), 5)
        for path in paths:
            for draft in DRAFTS:
                with self.subTest(file=path.name, draft=draft.__name__):
                    try:
                        document = load(path)
                    except ValueError:
                        continue  # skips files that are not JSON
                    self.assertIsNotNone(first_error(draft, document))

    def test_a_missing_or_wrong_member_is_found_at_its_path(self):
        for path in sorted((FIXTURES / "released").glob("*.json")):
            good = load(path)
            kind = path.name.split("-")[0]
            required = SCHEMAS[f"{kind}.schema.json"]["required"]
            for key in required:
                for draft in DRAFTS:
                    with self.subTest(file=path.name, key=key, draft=draft.__name__):
                        without = {name: value for name, value in good.items() if name != key}
                        self.assertFalse(validator(draft, kind).is_valid(without))
                        if key != "schema" and key in SCHEMAS[f"{kind}.schema.json"]["properties"]:
                            found = first_error(draft, {**good, key: [[None]]})
                            self.assertIsNotNone(found)
                            self.assertEqual(list(found.path)[:1], [key])


if __name__ == "__main__":
    unittest.main()
