"""Knows what the names of a module stand for, and which of its statements bind names, do nothing else and cannot fail."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from bench_code.mentions import WORDS
from bench_code.standard import PLAIN_BASES, PURE, STANDARD, compared, is_standard, makes, member
from bench_code.units import Function

OF_TESTS = ("pytest.mark.", "pytest.fixture", "pytest.param", "unittest.TestCase", "unittest.skip", "unittest.expectedFailure")
"""Beginnings of the names of what pytest and unittest have for the top of a file of tests. They do nothing but make a value."""
ENUMS = frozenset({"enum.Enum"})
"""Classes whose subclasses are enumerations of any constants."""
ASKED_BY_CLASSES = frozenset({"__init_subclass__", "__set_name__", "__class_getitem__", "__mro_entries__"})
"""Names of members that Python calls or reads when it makes another class."""


class Scope:
    """Remembers what each name stands for that the statements of a module have bound so far."""

    def __init__(self, tree: ast.Module):
        self.postponed = any(
            isinstance(node, ast.ImportFrom)
            and node.module == "__future__"
            and any(a.name == "annotations" for a in node.names)
            for node in tree.body
        )
        self.rebound = {word for node in ast.walk(tree) for word in bound_names(node)}
        self.known = self.top = dict[str, str]()
        """The names that are certainly bound, each with what it stands for: "function", "class", "enumeration", "property",
        "number", "text", "false", "value" or a dotted name. While a class is read they include the names of the class; `top`
        has the names of the module alone."""
        self.of_tests = False
        """Whether decorators, base classes and calls of pytest and unittest, which only make a value, count as such."""
        self.members: dict[str, set[str]] = {}
        """The members of each class that is a binding, as far as this module shows them."""

    def learn(self, node: ast.stmt) -> None:
        """Remember what the names stand for that a statement binds."""
        self.known |= self._meanings(node)

    def forget(self, names: Iterable[str]) -> None:
        """Forget what names stand for, since a statement may have bound them to anything."""
        for name in names:
            self.known.pop(name, None)

    def decided(self, test: ast.expr) -> bool | None:
        """Return how a condition comes out, which is the same in each run on this Python; None if that is not known."""
        false = isinstance(test, ast.Name) and test.id == "TYPE_CHECKING" and self.known.get(test.id) == "false"
        if false or self.dotted(test) == "typing.TYPE_CHECKING":
            return False
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return None
        try:
            constant = ast.literal_eval(test.comparators[0])
        except ValueError:
            return None
        return compared(self.dotted(test.left), type(test.ops[0]).__name__, constant)

    def is_reader_of_none(self, decorator: ast.expr) -> bool:
        accessor = isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "getter", "deleter")
        return accessor or self.dotted(decorator) in PURE or is_standard(self.dotted(decorator))

    def is_of_library(self, node: ast.expr) -> bool:
        """Return whether an expression only asks the standard library for a value, and gives it only constants."""
        if isinstance(node, ast.Call):
            given = (*node.args, *(keyword.value for keyword in node.keywords))
            return self.is_of_library(node.func) and all(
                isinstance(each, ast.Constant) or self.is_of_library(each) for each in given
            )
        if isinstance(node, ast.BinOp):
            return all(isinstance(each, ast.Constant) or self.is_of_library(each) for each in (node.left, node.right))
        if isinstance(node, ast.Attribute):
            return is_standard(self.dotted(node)) or self.is_of_library(node.value)
        return is_standard(self.dotted(node)) or (isinstance(node, ast.Name) and self.dotted(node) in STANDARD)

    def _meanings(self, node: ast.stmt) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], alias.name if alias.asname else alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}" if not node.level else "value"
        elif isinstance(node, Function):
            last = node.decorator_list[-1] if node.decorator_list else None
            known = "property" if isinstance(last, ast.Attribute) or self.dotted(last) == "property" else "value"
            yield node.name, known if last is not None else "function"
        elif isinstance(node, ast.ClassDef):
            enum = bool(node.bases) and self.dotted(node.bases[0]) in ENUMS
            yield node.name, "enumeration" if enum else "class"  # nothing can be a subclass of an enumeration with members
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    yield target.id, self._kind_of_value(node.value)

    def _kind_of_value(self, value: ast.expr) -> str:
        if isinstance(value, ast.Constant) and value.value is False:
            return "false"
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return "text"
        return "number" if self._is_number(value) else "value"

    def dotted(self, node: ast.expr | None) -> str:
        """Return the dotted name that an expression stands for, by an import or as a builtin; "" if it is not known."""
        if isinstance(node, ast.Name):
            known = self.known.get(node.id, "")
            if not known and hasattr(builtins, node.id) and node.id not in self.rebound and "*" not in self.rebound:
                return node.id
            return known if "." in known or known in STANDARD else ""
        if isinstance(node, ast.Attribute):
            before = self.dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
        return ""

    def binds_alone(self, node: ast.stmt) -> bool:
        """Return whether a statement binds names, does nothing else and cannot fail."""
        if isinstance(node, Function):
            given = node.args
            arguments = (*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg)))
            annotations = [*(argument.annotation for argument in arguments), node.returns]
            plain = all(map(self._is_pure, node.decorator_list)) and all(map(self._is_value, _defaults(given)))
            return plain and all(map(self._is_annotation, annotations))
        if isinstance(node, ast.ClassDef):
            return self._is_plain_class(node)
        if isinstance(node, ast.Assign):
            return all(isinstance(target, ast.Name) for target in node.targets) and self._is_value(node.value)
        if isinstance(node, ast.AnnAssign):
            value = node.value is None or self._is_value(node.value)
            return isinstance(node.target, ast.Name) and value and self._is_annotation(node.annotation)
        return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

    def _is_of_tests(self, node: ast.expr) -> bool:
        """Return whether an expression stands for a member of pytest or unittest that only makes a value."""
        if not self.of_tests:
            return False
        words = ast.unparse(node).split(".")
        return ".".join((self.known.get(words[0], ""), *words[1:])).startswith(OF_TESTS)

    def _is_pure(self, decorator: ast.expr) -> bool:
        if self._is_of_tests(decorator):
            return True
        if isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "getter", "deleter"):
            return isinstance(decorator.value, ast.Name) and self.known.get(decorator.value.id) == "property"
        if isinstance(decorator, ast.Call):
            values = [*decorator.args, *(keyword.value for keyword in decorator.keywords)]
            if self._is_of_tests(decorator.func):
                return all(map(self._is_value, values))
            return self.dotted(decorator.func) == "functools.lru_cache" and all(isinstance(v, ast.Constant) for v in values)
        return self.dotted(decorator) in PURE

    def _is_plain_class(self, node: ast.ClassDef) -> bool:
        if not all(self._is_ordering(each, node) for each in node.decorator_list) or node.keywords or len(node.bases) > 1:
            return False
        enum = bool(node.bases) and self.dotted(node.bases[0]) in ENUMS
        if not (enum and _is_plain_enum(node)) and not all(map(self._is_plain_base, node.bases)):
            return False
        bound = [word for member in node.body for inner in of_module(member) for word in bound_names(inner)]
        if ASKED_BY_CLASSES & set(bound) or ("__slots__" in bound and not _are_free_slots(node.body, bound)):
            return False
        around, self.known = self.known, dict(self.top)  # a class in a class does not see the names of the outer one
        plain = all(map(self._is_plain_member, node.body))
        of_base = (self.members.get(base.id, ()) for base in node.bases if isinstance(base, ast.Name))
        self.members[node.name] = set(bound).intersection(self.known).union(*of_base)
        self.known = around
        return plain

    def _is_ordering(self, decorator: ast.expr, node: ast.ClassDef) -> bool:
        """Return whether a class's decorator adds comparisons to one that the class has."""
        ordered = {"__lt__", "__le__", "__gt__", "__ge__"} & {each.name for each in node.body if isinstance(each, Function)}
        return self.dotted(decorator) == "functools.total_ordering" and bool(ordered)

    def _is_plain_member(self, member: ast.stmt) -> bool:
        value = member.value if isinstance(member, ast.Assign | ast.AnnAssign) else None
        is_known = not isinstance(value, ast.Name) or self.known.get(value.id) in ("function", "number", "text", "false")
        plain = isinstance(member, ast.Pass) or (is_known and self.binds_alone(member))  # else it may have `__set_name__`
        self.known |= self._meanings(member)
        return plain

    def _is_plain_base(self, base: ast.expr) -> bool:
        if isinstance(base, ast.Name) and self.known.get(base.id) == "class":
            return True  # of this module, and plain itself
        if self._is_of_tests(base):
            return True
        name = self.dotted(base)
        builtin = getattr(builtins, name, None)
        if isinstance(builtin, type) and (builtin in PLAIN_BASES or issubclass(builtin, BaseException)):
            return True
        return name.startswith("collections.abc.") and is_standard(name)

    def _is_annotation(self, node: ast.expr | None) -> bool:
        return node is None or self.postponed or (isinstance(node, ast.Constant) or self._is_value(node))

    def _is_number(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int | float)
        if isinstance(node, ast.Name):
            return self.known.get(node.id) == "number"
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.USub | ast.UAdd) and self._is_number(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            return self._is_number(node.left) and self._is_number(node.right)
        return False

    def _is_value(self, node: ast.expr) -> bool:
        """Return whether an expression makes a value, does nothing else and cannot fail."""
        if isinstance(node, ast.Lambda):
            return all(map(self._is_value, _defaults(node.args)))
        if isinstance(node, ast.Name):
            return node.id in self.known or bool(self.dotted(node))
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and self.known.get(node.value.id) in ("class", "enumeration"):
                return node.attr in self.members.get(node.value.id, ())
            return is_standard(self.dotted(node))
        if isinstance(node, ast.Tuple | ast.List):
            return all(map(self._is_value, node.elts))
        if isinstance(node, ast.Set):
            return all(map(self._is_key, node.elts))
        if isinstance(node, ast.Dict):
            return all(key is not None and self._is_key(key) for key in node.keys) and all(map(self._is_value, node.values))
        if isinstance(node, ast.Call):
            return self._is_plain_call(node)
        return isinstance(node, ast.Constant) or self._is_number(node)

    def _is_key(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Tuple):
            return all(map(self._is_key, node.elts))
        if isinstance(node, ast.Name):
            return self.known.get(node.id) in ("function", "class", "number", "text") or bool(self.dotted(node) == node.id)
        return isinstance(node, ast.Constant)

    def _is_plain_call(self, node: ast.Call) -> bool:
        if self._is_of_tests(node.func):
            return all(map(self._is_value, (*node.args, *(keyword.value for keyword in node.keywords))))
        name = self.dotted(node.func)
        if name in ("object", "list", "dict", "set", "tuple") and not node.args:
            return all(keyword.arg and self._is_value(keyword.value) and name == "dict" for keyword in node.keywords)
        if name == "frozenset" and not node.keywords and len(node.args) <= 1:
            return all(
                isinstance(given, ast.Set | ast.Tuple | ast.List) and all(map(self._is_key, given.elts)) for given in node.args
            )
        if name == "collections.defaultdict" and not node.keywords and len(node.args) == 1:
            return self.dotted(node.args[0]) in ("bool", "dict", "float", "int", "list", "set", "str", "tuple")
        try:
            named = {str(keyword.arg): self._constant(keyword.value) for keyword in node.keywords}
            return makes(name, [self._constant(given) for given in node.args], named)
        except ValueError:
            return False

    def _constant(self, node: ast.expr) -> object:
        """Return the value of a constant, of a member of the standard library, or of such members joined by `|`."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            left, right = self._constant(node.left), self._constant(node.right)
            if isinstance(left, int) and isinstance(right, int):
                return left | right
        if isinstance(node, ast.Attribute) and is_standard(self.dotted(node)):
            return member(self.dotted(node))
        return ast.literal_eval(node)


def _is_plain_enum(node: ast.ClassDef) -> bool:
    """Return whether an enumeration has only constants with different names, and functions that Python does not call for it."""
    names = list[str]()
    for each in node.body:
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name):
            if not isinstance(each.value, ast.Constant) or not isinstance(each.value.value, int | str):
                return False
            if each.targets[0].id.startswith("_") or each.targets[0].id in ("mro", "name", "value"):
                return False
            names.append(each.targets[0].id)
        elif isinstance(each, Function):
            if each.name.startswith("_") and each.name not in ("__lt__", "__le__", "__gt__", "__ge__", "__str__", "__repr__"):
                return False
            names.append(each.name)
        elif not isinstance(each, ast.Pass | ast.Expr):
            return False
    return len(names) == len(set(names))


def _are_free_slots(members: list[ast.stmt], bound: list[str]) -> bool:
    """Return whether a class's slots are spelled out, and no slot has the name of a member."""
    values = [
        each.value for each in members if isinstance(each, ast.Assign) and "__slots__" in set(bound_names(each.targets[0]))
    ]
    if len(values) != 1 or not isinstance(values[0], ast.Tuple | ast.List):
        return False
    names = [each.value for each in values[0].elts if isinstance(each, ast.Constant)]
    spelled = all(isinstance(name, str) and WORDS.fullmatch(name) and not name.startswith("__") for name in names)
    return spelled and len(names) == len(values[0].elts) and not set(names) & set(bound)


def _defaults(given: ast.arguments) -> list[ast.expr]:
    return [*given.defaults, *(value for value in given.kw_defaults if value is not None)]


def of_module(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a statement and the nodes in it, without the nodes of functions and classes."""
    yield node
    if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from of_module(child)


def bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that one node binds in its scope."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, Function | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    elif isinstance(node, ast.Global):
        yield from node.names
