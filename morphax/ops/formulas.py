"""Formulas in float64 as lowerings: arithmetic with Python's operators, loops that run until they have converged."""

from collections.abc import Callable, Sequence
from typing import Any

from morphax.ir.avals import ShapedArray
from morphax.ir.trace import stage
from morphax.ops import elementwise as ew
from morphax.ops import family
from morphax.ops.family import like
from morphax.support import dtypes

# ---- arithmetic ------------------------------------------------------------------------------------------------------


class Number:
    """An operand with the operators of Python, so that formulas read as such."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def _with(self, prim: Any, other: Any, swapped: bool = False) -> "Number":
        pair = (self.value, other.value if isinstance(other, Number) else like(self.value, other))
        return Number(prim(*(pair[::-1] if swapped else pair)))

    def __add__(self, other: Any) -> "Number":
        return self._with(ew.add, other)

    def __sub__(self, other: Any) -> "Number":
        return self._with(ew.sub, other)

    def __mul__(self, other: Any) -> "Number":
        return self._with(ew.mul, other)

    def __truediv__(self, other: Any) -> "Number":
        return self._with(ew.div, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Any) -> "Number":
        return self._with(ew.sub, other, True)

    def __rtruediv__(self, other: Any) -> "Number":
        return self._with(ew.div, other, True)

    def __neg__(self) -> "Number":
        return Number(ew.neg(self.value))

    def __lt__(self, other: Any) -> "Number":
        return self._with(ew.lt, other)

    def __le__(self, other: Any) -> "Number":
        return self._with(ew.le, other)

    def __gt__(self, other: Any) -> "Number":
        return self._with(ew.gt, other)

    def __ge__(self, other: Any) -> "Number":
        return self._with(ew.ge, other)

    def __and__(self, other: "Number") -> "Number":
        return Number(ew.and_(self.value, other.value))

    def __or__(self, other: "Number") -> "Number":
        return Number(ew.or_(self.value, other.value))

    def __invert__(self) -> "Number":
        return Number(ew.not_(self.value))

    # Not __eq__, which must return a bool.
    def equals(self, other: Any) -> "Number":
        return self._with(ew.eq, other)


def of(prim: Callable[..., Any]) -> Callable[..., Number]:
    """An operation on numbers."""
    return lambda *xs: Number(prim(*[x.value for x in xs]))


def choose(flag: Number, yes: Any, no: Any) -> Number:
    """`yes` where the flag is set."""
    both = [x.value if isinstance(x, Number) else family.scalar(x, dtypes.float64) for x in (no, yes)]
    return Number(ew.select_n(flag.value, *both))


def horner(x: Number, coefficients: Sequence[float]) -> Number:
    """c0 + c1 x + c2 x^2 + ..."""
    total = x * coefficients[-1] + coefficients[-2]
    for c in coefficients[-3::-1]:
        total = total * x + c
    return total


# ---- loops -----------------------------------------------------------------------------------------------------------

_UNROLLED = 8
_LIMIT = 4096
State = list[Number]
Step = Callable[[State, Number], tuple[State, Number]]


class Work:
    """Emits formulas and loops for operands of one shape, all of float64."""

    def __init__(self, low: Any, shape: tuple[int, ...]):
        self.low = low
        self.aval = ShapedArray(shape, dtypes.float64)
        self.flag = ShapedArray(shape, dtypes.bool_)
        self.scalar = ShapedArray((), dtypes.float64)

    def run(self, fun: Callable[..., Sequence[Number]], *operands: Any) -> list[Any]:
        """MLIR values of the formulas `fun` of MLIR values."""
        avals = [self.aval] * len(operands)
        made, _ = stage(lambda *xs: [x.value for x in fun(*map(Number, xs))], avals)
        results = self.low.equations(made, operands)
        # Without a barrier XLA would fuse long formulas again and again into all that use them.
        return self.low.op("stablehlo.optimization_barrier", made.out_avals, results)

    def loop(self, step: Callable[..., Any], start: Sequence[Any], fixed: Sequence[Any]) -> list[Any]:
        """Iterate `step` until all elements have converged.

        Args:
            step: (state, n, *fixed) -> (state, flag: which elements are still changing), for n = 1, 2, ...
            start: MLIR values of the state.
            fixed: MLIR values that every step sees.
        """
        low, count = self.low, len(start)
        types = [self.scalar, self.flag, *([self.aval] * count)]

        def body(n: Any, active: Any, *rest: Any) -> list[Any]:
            state, given = [Number(x) for x in rest[:count]], [Number(x) for x in rest[count:]]
            moving = None
            place = Number(n)
            for _ in range(_UNROLLED):
                state, moving = step(state, place, *given)
                place = place + 1.0
            assert moving is not None
            return [place.value, moving.value, *[s.value for s in state]]

        made, _ = stage(body, [*types, *([self.aval] * len(fixed))])
        one_flag = ShapedArray((), dtypes.bool_)

        def going(n: Any, active: Any, *rest: Any) -> list[Any]:
            some = low.reduce("stablehlo.or", self.flag, one_flag, active, False, range(self.flag.ndim))[0]
            limit = {"comparison_direction": "#stablehlo<comparison_direction LT>"}
            early = low.op("stablehlo.compare", (one_flag,), (n, low.constant(_LIMIT, self.scalar)), limit)[0]
            return low.op("stablehlo.and", (one_flag,), (some, early))

        first = [low.constant(1, self.scalar), low.constant(True, self.flag), *start]
        regions = ((types, going), (types, lambda *state: low.equations(made, [*state, *fixed])))
        return low.op("stablehlo.while", types, first, None, regions)[2:]


def lowering(fun: Callable[..., Any]) -> Callable[..., Any]:
    """In float64, whatever the operands are; results in their dtype."""

    def lower(low: Any, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], *operands: Any) -> list[Any]:
        out = outs[0]
        if not out.size:
            return [low.constant(0, out)]
        work = Work(low, out.shape)
        wide = []
        for x in family.spread(low, ins, out.shape, operands):
            wide.append(x if out.dtype == dtypes.float64 else low.op("stablehlo.convert", (work.aval,), (x,))[0])
        made = fun(work, *wide)
        return [made] if out.dtype == dtypes.float64 else low.op("stablehlo.convert", (out,), (made,))

    return lower
