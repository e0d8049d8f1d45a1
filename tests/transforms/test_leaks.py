"""`checking_leaks` finds values that outlive their trace, under every transform, and accuses nobody else."""

import pytest

import morphax
from morphax import lax
from morphax import numpy as jnp

TRANSFORMS = {
    "jit": lambda f: morphax.jit(f),
    "grad": lambda f: morphax.grad(f),
    "jvp": lambda f: lambda x: morphax.jvp(f, (x,), (x,)),
    "vmap": lambda f: lambda x: morphax.vmap(f)(jnp.full(3, x)),
    "grad of jit": lambda f: morphax.grad(morphax.jit(f)),
    "jit of grad": lambda f: morphax.jit(morphax.grad(f)),
    "hessian": lambda f: morphax.hessian(f),
    "make_jaxpr": lambda f: morphax.make_jaxpr(f),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_found_where_stored_and_only_there(name):
    held = []

    def leaky(x):
        held.append(jnp.sin(x))
        return x * 2

    def clean(x):
        total, _ = lax.scan(lambda c, k: (c * k, c), x, jnp.arange(1.0, 4.0))
        return total + morphax.checkpoint(jnp.sin)(x)

    transform = TRANSFORMS[name]
    with morphax.checking_leaks():
        transform(clean)(1.0)
        with pytest.raises(Exception, match=r"(?s)Leaked trace .* is held by a list"):
            transform(leaky)(1.0)
    transform(leaky)(1.0)  # only looked for on demand


def test_auxiliary_numbers_are_arrays():
    with_aux = lambda x: (x * x, {"count": 3, "x": x})  # noqa: E731
    values = [
        morphax.grad(with_aux, has_aux=True)(2.0)[1],
        morphax.value_and_grad(with_aux, has_aux=True)(2.0)[0][1],
        morphax.vjp(with_aux, 2.0, has_aux=True)[2],
        morphax.jvp(with_aux, (2.0,), (1.0,), has_aux=True)[2],
    ]
    assert all(isinstance(leaf, morphax.Array) for aux in values for leaf in morphax.tree.leaves(aux))
