"""Every public exception: what caused it, and the cure.

Messages are one or two sentences and name the function, the values, and what to do; the long explanation is here.
"""

from jaxlib import _jax

JaxRuntimeError = _jax.JaxRuntimeError
"""The compiler or the devices failed while a program was compiled or run; `error_code_string` names the kind.

`RESOURCE_EXHAUSTED` means that memory ran out: use smaller batches, donate arguments, or `checkpoint` parts of the
program. `INVALID_ARGUMENT` often means that an array was used after it was donated. Since programs run
asynchronously, the error may come up later than the line that started them: at `block_until_ready`, or when the result
is read.
"""


class JAXTypeError(TypeError):
    """The kind of all TypeErrors about traced values and keys, so that one `except` catches them together."""


class JAXIndexError(IndexError):
    """The kind of all IndexErrors about traced values, so that one `except` catches them together."""


class ConcretizationTypeError(JAXTypeError):
    """A number was needed where only its type is known.

    While `jit`, `vmap` or another transform traces a function, its arguments stand for all values of their shape and
    dtype. Python cannot turn such a value into one `float`, `int`, shape or `range`:

        @jit
        def scale(x, n):
            return x.reshape(int(n), -1)    # n is traced: no int to be had

    Cure, depending on what the number is for:
      - it decides shapes or how the program is built: pass it outside the trace, `jit(scale, static_argnames="n")`;
      - it follows from shapes: compute it from `x.shape` and `x.ndim`, plain Python values, with `math` or NumPy;
      - only its dtype should change: `x.astype(int)` works on traced values where `int(x)` cannot.
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """An `if`, `while`, `and`, `or` or `assert` met a value that is known only by its type.

        @jit
        def relu(x):
            return x if x > 0 else 0.0      # which branch? x has no value while tracing

    Cure: choose with values, `jnp.where(x > 0, x, 0.0)`; or let the program branch, `lax.cond(x > 0, f, g, x)`; loop
    with `lax.while_loop`. Combine masks with `&`, `|`, `~` instead of `and`, `or`, `not`, and chained comparisons
    `0 < x < 1` as `(0 < x) & (x < 1)`. If the value is the same in every call, mark the argument static.
    """


class TracerIntegerConversionError(JAXTypeError):
    """A traced value was used as an index or a count of Python: `names[i]`, `range(i)`, `[0] * i`.

        @jit
        def pick(i):
            return (2, 3, 5)[i]             # a tuple needs an int now

    Cure: index an array instead of a list or tuple, `jnp.array((2, 3, 5))[i]`; loop with `lax.fori_loop`; or mark the
    argument static, `jit(pick, static_argnums=0)`.
    """


class TracerArrayConversionError(JAXTypeError):
    """NumPy, or other code that needs numbers, was given a value that is known only by its type.

        @jit
        def root(x):
            return np.sqrt(x)               # NumPy computes at once, and there is nothing to compute with

    Cure: call the function of the same name in `jnp`. A NumPy array that is indexed by a traced value must become a
    `jnp` array first: `jnp.asarray(table)[i]`. For code that has no counterpart, `pure_callback` calls it at run time.
    """


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced mask was used as an index, so that the length of the result would depend on values.

        @jit
        def positive(x):
            return x[x > 0]                 # how long is it?

    Cure: keep the shape and neutralise the rest, `jnp.where(x > 0, x, 0)`, or reduce with `x.sum(where=x > 0)`. If a
    bound on the length is known: `x[jnp.nonzero(x > 0, size=bound, fill_value=0)]`. Outside the trace, masks work.
    """


class UnexpectedTracerError(JAXTypeError):
    """A traced value escaped from the function in which it was made, and was used after the trace had ended.

        seen = []

        @jit
        def f(x):
            seen.append(x + 1)              # the tracer leaves through a side effect
            return x

        f(1.0)
        seen[0] * 2                         # UnexpectedTracerError

    Cure: return the value from the function. Look for assignments to globals and to attributes, for caches, and for
    closures made in one traced function and called in another. `config.update("jax_check_tracer_leaks", True)` raises
    as soon as the trace ends, where the leak can still be seen.
    """


class KeyReuseError(JAXTypeError):
    """A random key was used twice under `debug_key_reuse`, which would give correlated numbers.

        key = random.key(0)
        x = random.normal(key)
        y = random.normal(key)              # the same numbers again

    Cure: split first, one part for each use: `k1, k2 = random.split(key)`. If equal numbers are wanted, use
    `random.clone(key)`.
    """


class IncompatibleShapesError(TypeError, ValueError):
    """Shapes that do not broadcast. It is of both kinds since JAX raises TypeError for operators and ValueError for
    functions of shapes.

        jnp.ones(3) + jnp.ones(2)

    Cure: axes, counted from the last, must be equal or 1. Reshape or transpose one operand: `x[:, None] + y`.
    """


class TypePromotionError(ValueError):
    """Two dtypes have no common type, or strict promotion forbids to look for one.

        jnp.ones(3, "int4") + jnp.ones(3, "float32")

    Types of fewer than 8 bits and the 8-bit floats do not promote, since the result would surprise. Under
    `numpy_dtype_promotion="strict"` no two different dtypes do; Python numbers still adapt to the array's dtype.

    Cure: say the type: `a.astype("float32") + b`.
    """


class InconclusiveDimensionOperation(Exception):
    """A question about symbolic dimensions has no answer that holds for all their values.

        n, = export.symbolic_shape("n")
        n >= 4                              # true for some n only

    Cure: state what is known as a constraint: `export.symbolic_shape("n", constraints=["n >= 4"])`; or compute with
    operations that need no decision, such as `core.max_dim(n, 4)`.
    """


class JaxprTypeError(TypeError):
    """A jaxpr is not well formed: an equation's operands or results differ from what its primitive's type rule gives.

    It is raised by the checks that `enable_checks` turns on. The cause is an error in a primitive's rule, or in code
    that builds jaxprs by hand, not in the function that was traced.
    """
