"""SciPy's special functions, elementwise but for `logsumexp`, `softmax` and `log_softmax`.

The chapters: elementary, gammas, errors, integrals, harmonics.

>>> from morphax.scipy import special
>>> special.expit(0.0).item()
0.5
"""

from morphax.scipy.special.elementary import (
    bernoulli,
    boxcox,
    boxcox1p,
    entr,
    expit,
    kl_div,
    log_softmax,
    logit,
    logsumexp,
    rel_entr,
    softmax,
    xlog1py,
    xlogy,
)
from morphax.scipy.special.errors import (
    dawsn,
    erf,
    erfc,
    erfcx,
    erfinv,
    fresnel,
    log_ndtr,
    ndtr,
    ndtri,
    owens_t,
    wofz,
)
from morphax.scipy.special.gammas import (
    bessel_jn,
    beta,
    betainc,
    betaln,
    comb,
    digamma,
    factorial,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    gammasgn,
    i0,
    i0e,
    i1,
    i1e,
    loggamma,
    multigammaln,
    poch,
    polygamma,
    zeta,
)
from morphax.scipy.special.harmonics import lpmn, lpmn_values, sph_harm_y
from morphax.scipy.special.integrals import exp1, expi, expn, hyp1f1, hyp2f1, sici, spence
