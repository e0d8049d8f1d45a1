"""Jaxprs as text and back: the notation that JAX's users know.

    { lambda ; a:f32[4]. let b:f32[4] = sin a; c:f32[] = reduce_sum[axes=(0,)] b in (c,) }

Printing and parsing are inverse up to weak types, sources and the names of variables.
"""

import ast
import re
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from morphax.ir.avals import ShapedArray
from morphax.ir.jaxpr import Atom, ClosedJaxpr, DropVar, Eqn, Jaxpr, Literal, printer
from morphax.ir.primitive import Var, named
from morphax.support import dtypes

WIDTH = 80

# ---- printing --------------------------------------------------------------------------------------------------------


class _Names:
    """Names of variables, shared by a jaxpr and those inside it; and the jaxprs that are printed once, by name."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.count = 0
        self.hoisted: dict[Jaxpr, str] = {}

    def of(self, v: Atom) -> str:
        if isinstance(v, Literal):
            return f"{_number(v.val)}:{v.aval}"
        found = self.names.get(v)
        if found is None:
            found = self.names[v] = _letters(self.count)
            self.count += 1
        return found

    def typed(self, v: Var) -> str:
        return f"{self.of(v)}:{v.aval}"


def _letters(k: int) -> str:
    digits = ""
    while True:
        k, rest = divmod(k, 26)
        digits = chr(97 + rest) + digits
        if k == 0:
            return digits


def _number(value: Any) -> str:
    value = np.asarray(value)
    kind = dtypes.kind(value.dtype)
    if kind == "f":
        return repr(float(value))
    return repr(complex(value)) if kind == "c" else repr(value.item())


def _used(jaxpr: Jaxpr) -> set[Any]:
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if v.__class__ is not Literal}
    used.update(v for v in jaxpr.outvars if v.__class__ is not Literal)
    return used


def _inner_jaxpr(value: Any) -> Jaxpr | None:
    if isinstance(value, ClosedJaxpr):
        return value.jaxpr
    return value if isinstance(value, Jaxpr) else None


def _value(value: Any) -> str:
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, dtypes.ExtendedDType):
        return value.name
    if isinstance(value, np.generic):
        return str(value.item())
    if isinstance(value, tuple) and type(value) is tuple:
        inner = ", ".join(map(_value, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return getattr(value, "__name__", None) or str(value) if callable(value) else str(value)


class _Printer:
    """Lays text out in lines of at most WIDTH: everything on one line if it fits, else one item a line."""

    def __init__(self, names: _Names):
        self.names = names

    def jaxpr(self, jaxpr: Jaxpr, indent: int, room: int) -> str:
        """The text; `indent` is that of further lines, `room` the columns left on the first."""
        names = self.names
        binders = " ".join(names.typed(v) for v in jaxpr.constvars)
        inputs = " ".join(names.typed(v) for v in jaxpr.invars)
        head = f"{{ lambda {binders}; {inputs}. let" if binders else f"{{ lambda ; {inputs}. let"
        used = _used(jaxpr)
        left = [self._results(eqn, used) for eqn in jaxpr.eqns]
        outs = [names.of(v) for v in jaxpr.outvars]
        tail = "in (" + ", ".join(outs) + ("," if len(outs) == 1 else "") + ") }"
        flat_eqns = [self.equation(eqn, lhs, None) for eqn, lhs in zip(jaxpr.eqns, left, strict=True)]
        if all(text is not None for text in flat_eqns):
            flat = f"{head} {'; '.join(map(str, flat_eqns))} {tail}"
            if len(flat) <= room or not jaxpr.eqns:
                return flat
        pad = " " * indent
        lines = [self.equation(eqn, lhs, indent + 4) for eqn, lhs in zip(jaxpr.eqns, left, strict=True)]
        body = "\n".join(f"{pad}    {line}" for line in lines)
        return f"{head}\n{body}\n{pad}  {tail}"

    def _results(self, eqn: Eqn, used: set[Any]) -> str:
        names = self.names
        return " ".join(
            names.typed(v) if v in used and not isinstance(v, DropVar) else f"_:{v.aval}" for v in eqn.outvars
        )

    def equation(self, eqn: Eqn, left: str, indent: int | None) -> str | None:
        """The equation on one line with `indent` None (None if it cannot be), else broken where it must be."""
        operands = " ".join(self.names.of(v) for v in eqn.invars)
        start = f"{left} = " if left else ""
        params = eqn.primitive.show(eqn.params) if eqn.primitive.show is not None else eqn.params
        items = sorted(params.items()) if eqn.primitive.name != "jit" else list(params.items())
        self._name_like_operands(eqn)
        if not items:
            return f"{start}{eqn.primitive.name} {operands}"
        flat = [self._param(k, v, None) for k, v in items]
        if all(text is not None for text in flat):
            line = f"{start}{eqn.primitive.name}[{' '.join(map(str, flat))}] {operands}"
            if indent is None or indent + len(line) <= WIDTH:
                return line
        if indent is None:
            return None
        pad = " " * indent
        rows = "\n".join(f"{pad}  {self._param(k, v, indent + 2)}" for k, v in items)
        return f"{start}{eqn.primitive.name}[\n{rows}\n{pad}] {operands}"

    def _name_like_operands(self, eqn: Eqn) -> None:
        # The variables of a called jaxpr take the names of what is passed and returned.
        if eqn.primitive.name != "jit" or eqn.params["jaxpr"] in self.names.hoisted:
            return
        inner = eqn.params["jaxpr"]
        names = self.names.names
        for v, outer in (*zip(inner.outvars, eqn.outvars, strict=True), *zip(inner.invars, eqn.invars, strict=True)):
            if v.__class__ is not Literal and outer.__class__ is not Literal and outer in names:
                names[v] = names[outer]

    def _param(self, key: str, value: Any, indent: int | None) -> str | None:
        inner = _inner_jaxpr(value)
        if inner is not None:
            if inner in self.names.hoisted:
                return f"{key}={self.names.hoisted[inner]}"
            if indent is None:
                text = self.jaxpr(inner, 0, 10_000)
                return None if "\n" in text else f"{key}={text}"
            return f"{key}={self.jaxpr(inner, indent, WIDTH - indent - len(key) - 1)}"
        if isinstance(value, (tuple, list)) and any(_inner_jaxpr(v) is not None for v in value):
            if indent is None:
                return None
            pad = " " * indent
            inner = [j for j in map(_inner_jaxpr, value) if j is not None]
            rows = "\n".join(f"{pad}  {self.jaxpr(j, indent + 2, WIDTH - indent - 2)}" for j in inner)
            return f"{key}=(\n{rows}\n{pad})"
        return f"{key}={_value(value)}"


def show(jaxpr: Jaxpr) -> str:
    """The jaxpr as text. Jaxprs that are called more than once are written first, by name."""
    names = _Names()
    text = _Printer(names)
    calls: dict[Jaxpr, int] = {}
    _count_calls(jaxpr, calls)
    lines = []
    taken: set[str] = set()
    for inner, count in calls.items():
        if count > 1:
            name = _plain(inner.debug_name or "jaxpr")
            while name in taken:
                name += "_"
            taken.add(name)
            lines.append(f"let {name} = {text.jaxpr(inner, 0, WIDTH - 9 - len(name))} in")
            names.hoisted[inner] = name
    lines.append(text.jaxpr(jaxpr, 0, WIDTH))
    return "\n".join(lines)


def _plain(name: str) -> str:
    return re.sub(r"\W", "", name) or "jaxpr"


def _count_calls(jaxpr: Jaxpr, calls: dict[Jaxpr, int]) -> None:
    for eqn in jaxpr.eqns:
        inner = eqn.params.get("jaxpr") if eqn.primitive.name == "jit" else None
        if inner is not None:
            if inner not in calls:
                _count_calls(inner, calls)
            calls[inner] = calls.pop(inner, 0) + 1 if inner not in calls else calls[inner] + 1


printer[0] = show

# ---- parsing ---------------------------------------------------------------------------------------------------------

# Classes whose printed form is read back: enums, and named tuples such as dimension numbers.
_readable: dict[str, type] = {}
_Class = TypeVar("_Class", bound=type)


def readable(cls: _Class) -> _Class:
    """Class decorator: values of this class appear in parameters, printed as Python would write them."""
    _readable[cls.__name__] = cls
    return cls


class _Reader:
    def __init__(self, text: str):
        self.text = text
        self.at = 0

    def fail(self, wanted: str) -> ValueError:
        line = self.text.count("\n", 0, self.at) + 1
        return ValueError(f"parse: expected {wanted} in line {line}, at {self.text[self.at : self.at + 40]!r}.")

    def space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def peek(self, mark: str) -> bool:
        self.space()
        return self.text.startswith(mark, self.at)

    def take(self, mark: str) -> None:
        if not self.peek(mark):
            raise self.fail(repr(mark))
        self.at += len(mark)

    def match(self, pattern: str, wanted: str) -> str:
        self.space()
        found = re.compile(pattern).match(self.text, self.at)
        if found is None:
            raise self.fail(wanted)
        self.at = found.end()
        return found.group()

    def balanced(self, stops: str) -> str:
        """Text up to whitespace or one of `stops` outside brackets."""
        self.space()
        start, depth = self.at, 0
        while self.at < len(self.text):
            c = self.text[self.at]
            if depth == 0 and (c.isspace() or c in stops):
                break
            depth += (c in "([{<") - (c in ")]}>")
            self.at += 1
        return self.text[start : self.at]


_TYPE = re.compile(r"([a-z]\w*(?:<\w+>)?)\[([^\]]*)\]")


def _read_type(text: str) -> ShapedArray:
    found = _TYPE.fullmatch(text)
    if found is None:
        raise ValueError(f"parse: {text!r} is not a type such as f32[2,3].")
    name, dims = found.groups()
    return ShapedArray(tuple([int(d) for d in dims.split(",") if d]), dtypes.from_short_name(name))


class _Parser(_Reader):
    def __init__(self, text: str):
        super().__init__(text)
        self.hoisted: dict[str, Jaxpr] = {}

    def program(self) -> Jaxpr:
        while self.peek("let "):
            self.take("let ")
            name = self.match(r"\w+", "a name")
            self.take("=")
            read = self.jaxpr({})
            self.hoisted[name] = Jaxpr(
                read.constvars, read.invars, read.eqns, read.outvars, read.effects, debug_name=name
            )
            self.take("in")
        jaxpr = self.jaxpr({})
        self.space()
        if self.at != len(self.text):
            raise self.fail("the end")
        return jaxpr

    def jaxpr(self, outer: dict[str, Var]) -> Jaxpr:
        env: dict[str, Var] = dict(outer)
        self.take("{")
        self.take("lambda")
        constvars = self.binders(env)
        self.take(";")
        invars = self.binders(env)
        self.take(".")
        self.take("let")
        eqns = []
        while not self.peek("in ("):
            eqns.append(self.equation(env))
            if self.peek(";"):
                self.take(";")
        self.take("in")
        outvars = self.atoms_in_parentheses(env)
        self.take("}")
        return Jaxpr(constvars, invars, eqns, outvars)

    def binders(self, env: dict[str, Var]) -> list[Var]:
        found = []
        while not self.peek(";") and not self.peek(". let"):
            found.append(self.binder(env))
        return found

    def binder(self, env: dict[str, Var]) -> Var:
        name = self.match(r"\w+", "a variable")
        self.take(":")
        var = Var(_read_type(self.match(_TYPE.pattern, "a type")))
        if name != "_":
            env[name] = var
        return var

    def equation(self, env: dict[str, Var]) -> Eqn:
        start = self.at
        self.space()
        names: list[tuple[str, ShapedArray]] = []
        while re.compile(r"\w+:" + _TYPE.pattern).match(self.text, self.at):
            name = self.match(r"\w+", "a variable")
            self.take(":")
            names.append((name, _read_type(self.match(_TYPE.pattern, "a type"))))
            self.space()
        if names:
            self.take("=")
        prim = named(self.match(r"[\w.-]+", "a primitive"))
        shown = self.params() if self.peek("[") else {}
        operands = self.operands(env)
        types = tuple([t for _, t in names])
        params = prim.read(shown, tuple([v.aval for v in operands]), types) if prim.read is not None else shown
        made = prim.types(tuple([v.aval for v in operands]), params)
        if [str(t) for t in made] != [str(t) for t in types]:
            raise ValueError(
                f"parse: {prim.name} gives {made}, but the text says {types}: {self.text[start : self.at]!r}."
            )
        outvars = [Var(t) for t in made]
        env.update({name: v for (name, _), v in zip(names, outvars, strict=True) if name != "_"})
        return Eqn(prim, operands, params, outvars, prim.effects_of(params))

    def operands(self, env: dict[str, Var]) -> list[Atom]:
        found: list[Atom] = []
        while self.at < len(self.text) and self.text[self.at] != "\n":
            if self.text[self.at] == " " and not self.text.startswith(" in (", self.at):
                self.at += 1
                continue
            if self.text[self.at] in ";}" or self.text.startswith(" in (", self.at):
                break
            found.append(self.atom(env))
        return found

    def atom(self, env: dict[str, Var]) -> Atom:
        self.space()
        literal = re.compile(r"(\([^()]*j\)|[-+]?(?:inf|nan)j?|[-+]?[\d.][\w.+-]*|True|False):").match(
            self.text, self.at
        )
        if literal is not None:
            self.at = literal.end()
            aval = _read_type(self.match(_TYPE.pattern, "a type"))
            value = literal.group(1)
            number = (
                complex(value) if "j" in value else float(value) if value not in ("True", "False") else value == "True"
            )
            if dtypes.kind(aval.dtype) in "iu":
                number = int(value)
            return Literal(np.asarray(number).astype(aval.dtype)[()], aval.update(weak_type=True))
        name = self.match(r"\w+", "a variable or a literal")
        if name not in env:
            raise ValueError(f"parse: the variable {name} is used before it is defined.")
        return env[name]

    def atoms_in_parentheses(self, env: dict[str, Var]) -> list[Atom]:
        self.take("(")
        found = []
        while not self.peek(")"):
            found.append(self.atom(env))
            if self.peek(","):
                self.take(",")
        self.take(")")
        return found

    def params(self) -> dict[str, Any]:
        self.take("[")
        found: dict[str, Any] = {}
        while not self.peek("]"):
            key = self.match(r"\w+", "a parameter")
            self.take("=")
            found[key] = self.value()
        self.take("]")
        return found

    def value(self) -> Any:
        if self.peek("{"):
            return self.jaxpr({})
        if re.compile(r"\(\s*\{").match(self.text, self.at):
            self.take("(")
            inner = []
            while not self.peek(")"):
                inner.append(self.jaxpr({}))
            self.take(")")
            return tuple(inner)
        return self._plain(self.balanced("]"))

    def _plain(self, text: str) -> Any:
        if text in self.hoisted:
            return self.hoisted[text]
        if text in dtypes.BY_NAME:
            return dtypes.BY_NAME[text]
        try:
            return _evaluate(ast.parse(text, mode="eval").body)
        except (SyntaxError, ValueError, KeyError, AttributeError):
            return text


def _evaluate(node: ast.expr) -> Any:
    """A Python literal, an enum member such as Mode.CLIP, or a call of a readable class."""
    if isinstance(node, ast.Tuple):
        return tuple([_evaluate(e) for e in node.elts])
    if isinstance(node, ast.List):
        return [_evaluate(e) for e in node.elts]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return getattr(_readable[node.value.id], node.attr)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _readable[node.func.id](**{k.arg: _evaluate(k.value) for k in node.keywords if k.arg is not None})
    if isinstance(node, ast.Name):
        return dtypes.BY_NAME[node.id]
    return ast.literal_eval(node)


def parse(text: str) -> Jaxpr:
    """The jaxpr that is written `text`.

    Raises:
        ValueError: the text is not a jaxpr, or a type in it is not what the operation gives.

    >>> from morphax.ops import elementwise
    >>> parse("{ lambda ; a:f32[4]. let b:f32[4] = sin a in (b,) }")
    { lambda ; a:f32[4]. let b:f32[4] = sin a in (b,) }
    """
    return _Parser(text).program()
