"""Checks that every type at namespace scope has a unique name. Compilers do not report two types with the same name in
one binary, which is undefined behaviour."""

import re

NAMESPACE = re.compile(r"^(?:inline )?namespace(?: ([\w:]+))? \{$")
END = re.compile(r"^\}  // namespace")
TYPE = re.compile(r"^(?:struct|class|union|enum class|enum) (\w+)(?: final)?(?: :.*)?(?: \{.*|)$")


def run(tree):
    names = [name for name in tree.code() if not name.startswith("tests/")]
    first, problems = {}, []
    for name in names:
        for number, type_name in types_of(tree.lines(name)):
            if first.setdefault(type_name, (name, number))[0] == name:
                continue
            problems.append(f"{name}:{number}: {type_name} is also a type of {first[type_name][0]}: "
                            "rename one, or put it into an unnamed namespace")
    return f"{len(names)} files", problems


def types_of(lines):
    """Returns (line number, qualified name) of every type defined outside unnamed namespaces."""
    scope, found = [], []
    for number, line in enumerate(lines, 1):
        namespace = NAMESPACE.match(line)
        if namespace:
            scope.append(namespace[1])
        elif END.match(line) and scope:
            scope.pop()
        elif None not in scope:
            match = TYPE.match(line)
            if match and ("{" in line or not line.endswith(";")):
                found.append((number, "::".join(scope + [match[1]])))
    return found
