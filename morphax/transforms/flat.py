"""From the user's functions of pytrees to functions of flat sequences of arrays, and the errors on the way."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from morphax.ir import avals
from morphax.ir.jaxpr import Var
from morphax.support import dtypes, tree


def name_of(fun: Any) -> str:
    """The name by which messages call a function."""
    return getattr(fun, "__name__", None) or getattr(getattr(fun, "func", None), "__name__", None) or type(fun).__name__


def check_callable(api: str, fun: Any) -> None:
    """Refuse what cannot be transformed."""
    if not callable(fun):
        raise TypeError(f"{api}: expected a function, got {fun!r:.80} of type {type(fun).__name__}.")
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"{api}: {name_of(fun)} is a generator function; return a list or an array of what it yields.")


def argument_path(keys: Any, api: str = "") -> str:
    """`args[0]['w']` or `kwargs['x']`, for the key path of a leaf of (args, kwargs)."""
    first, *rest = keys
    return ("args" if first.idx == 0 else "kwargs") + tree.keystr(tuple(rest))


def check_leaf(api: str, leaf: Any, where: Callable[[], str]) -> avals.ShapedArray:
    """Type of an argument's leaf.

    Raises:
        TypeError: it is not an array or a number.
    """
    try:
        return avals.typeof(leaf)
    except TypeError:
        raise TypeError(
            f"{api}: {where()} is {leaf!r:.60} of type {type(leaf).__name__}, which is not an array or a number. "
            "Pass arrays, mark the argument static with static_argnums, or close over it."
        ) from None


def canonical(leaf: Any) -> Any:
    """A NumPy array in the dtype that arrays get from it: 64-bit ones are narrowed unless x64 is enabled."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        dtype = dtypes.canonicalize_dtype(leaf.dtype)
        return np.asarray(leaf) if leaf.dtype == dtype else np.asarray(leaf).astype(dtype)
    return leaf


class FlatFun:
    """`fun` as a function of flat leaves that returns flat leaves. `out_tree` is known after a call.

    Args:
        fun: the user's function.
        in_tree: structure of (args, kwargs).
        api: name of the transform, for messages.
        has_aux: `fun` returns (output, aux); their leaves follow each other, `aux_tree` is known after a call.
    """

    __slots__ = ("api", "aux_tree", "fun", "has_aux", "in_tree", "out_count", "out_tree")

    def __init__(self, fun: Callable[..., Any], in_tree: Any, api: str, has_aux: bool = False):
        self.fun = fun
        self.in_tree = in_tree
        self.api = api
        self.has_aux = has_aux
        self.out_tree: Any = None
        self.aux_tree: Any = None
        self.out_count = 0

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = tree.unflatten(self.in_tree, leaves)
        out = self.fun(*args, **kwargs)
        aux_leaves: list[Any] = []
        if self.has_aux:
            if not (isinstance(out, (tuple, list)) and len(out) == 2):
                raise TypeError(
                    f"{self.api}: with has_aux=True {name_of(self.fun)} must return a pair (output, aux); it returned "
                    f"{out!r:.80}."
                )
            out, aux = out
            aux_leaves, self.aux_tree = tree.flatten(aux)
        results, self.out_tree = tree.flatten(out)
        self.out_count = len(results)
        for leaf in results:
            if not hasattr(leaf, "aval"):
                check_output(self.api, self.fun, out)
                break
        return results + aux_leaves


def check_output(api: str, fun: Any, out: Any) -> None:
    """Refuse outputs that are not arrays, naming where they stand."""
    for keys, leaf in tree.leaves_with_path(out):
        try:
            avals.typeof(leaf)
        except TypeError:
            where = f" at output{tree.keystr(keys)}" if keys else ""
            raise TypeError(
                f"{api}: {name_of(fun)} returned {leaf!r:.80} of type {type(leaf).__name__}{where}, which is not an "
                "array or a number. Return arrays, numbers, or pytrees of them."
            ) from None


def split_static(args: Sequence[Any], static: Sequence[int]) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
    """The arguments that are not static, and a function that puts the static ones back among others."""
    dynamic = [a for i, a in enumerate(args) if i not in static]

    def merge(others: Sequence[Any]) -> list[Any]:
        given = iter(others)
        return [args[i] if i in static else next(given) for i in range(len(args))]

    return dynamic, merge


def dce_names(in_tree: Any) -> Callable[[int], str]:
    """Words for the k-th leaf of (args, kwargs): its path."""

    def name(position: int) -> str:
        filled = tree.unflatten(in_tree, range(in_tree.num_leaves))
        keys = {leaf: path for path, leaf in tree.leaves_with_path(filled)}
        return f"argument {argument_path(keys[position])}" if position in keys else f"argument {position}"

    return name


__all__ = ["FlatFun", "Var", "argument_path", "check_callable", "check_leaf", "check_output", "name_of", "split_static"]
