"""The example of every public function runs, also of those that tables make."""

import doctest

import pytest

from morphax import numpy as jnp

OBJECTS = {name: value for name, value in vars(jnp).items() if not name.startswith("_") and callable(value)}
OWN = {k: v for k, v in OBJECTS.items() if getattr(v, "__module__", "").startswith("morphax.numpy")}


@pytest.mark.parametrize("name", OWN)
def test_example(name):
    doc = OWN[name].__doc__
    assert doc, name
    example = doctest.DocTestParser().get_doctest(doc, {}, name, None, 0)
    assert example.examples or isinstance(OWN[name], type), name
    report = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=report.append)
    assert not report, "".join(report)
