"""The public exceptions: their kinds, and that each explains itself."""

import inspect
import pickle

import pytest

from morphax.support import errors

KINDS = {
    "ConcretizationTypeError": (errors.JAXTypeError, TypeError),
    "InconclusiveDimensionOperation": (Exception,),
    "JAXIndexError": (IndexError,),
    "JAXTypeError": (TypeError,),
    "JaxRuntimeError": (RuntimeError,),
    "JaxprTypeError": (TypeError,),
    "KeyReuseError": (errors.JAXTypeError, TypeError),
    "NonConcreteBooleanIndexError": (errors.JAXIndexError, IndexError),
    "TracerArrayConversionError": (errors.JAXTypeError, TypeError),
    "TracerBoolConversionError": (errors.ConcretizationTypeError, errors.JAXTypeError, TypeError),
    "TracerIntegerConversionError": (errors.JAXTypeError, TypeError),
    "IncompatibleShapesError": (TypeError, ValueError),
    "TypePromotionError": (ValueError,),
    "UnexpectedTracerError": (errors.JAXTypeError, TypeError),
}
OWN = [name for name in KINDS if name != "JaxRuntimeError"]


@pytest.mark.parametrize("name", KINDS)
def test_exception_is_of_its_kinds(name):
    assert all(issubclass(getattr(errors, name), kind) for kind in KINDS[name])


def test_every_exception_is_listed():
    found = {name for name, value in vars(errors).items() if inspect.isclass(value)}
    assert found == set(KINDS)


@pytest.mark.parametrize("name", OWN)
def test_exception_explains_itself_and_pickles(name):
    kind = getattr(errors, name)
    assert len(kind.__doc__) > 80
    copy = pickle.loads(pickle.dumps(kind("f: x is wrong.")))
    assert type(copy) is kind
    assert str(copy) == "f: x is wrong."


@pytest.mark.parametrize("name", [n for n in OWN if n not in ("JAXTypeError", "JAXIndexError", "JaxprTypeError")])
def test_exception_names_a_cure(name):
    assert "Cure" in getattr(errors, name).__doc__
