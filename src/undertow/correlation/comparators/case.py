"""The models of the comparison: three data sets, as the sources describe them.

Noise scales do not depend on the data, only on these parameters. Chains are the
published transition matrices with rows that sum to one (the activity matrix from its
transition counts); the Gaussian models are the covariances of the public heights and
test scores, variances included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from undertow._validate import check_choice

if TYPE_CHECKING:
    from undertow.correlation.model import Model
    from undertow.correlation.query import Query

__all__ = ["CASES", "ReferenceCase", "reference_case"]

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class ReferenceCase:
    """A model and a query whose noise scales are compared.

    Parameters
    ----------
    name : str
        Short name.
    model : Model
        How the records depend.
    query : Query
        What is released.
    """

    name: str
    model: Model
    query: Query


# Activity: transitions between consecutive 5-minute slots, pairs with a missing value
# left out: (9713, 1295; 1295, 2955). Electricity: days above 70, 80 and 90 kWh.
_CHAINS: dict[str, tuple[Matrix, int]] = {
    "activity": (
        ((9713 / 11008, 1295 / 11008), (1295 / 4250, 2955 / 4250)),
        17568,
    ),
    "electricity-70": (((0.445, 0.555), (0.15, 0.85)), 731),
    "electricity-80": (((0.818, 0.182), (0.371, 0.629)), 731),
    "electricity-90": (((0.894, 0.106), (0.478, 0.522)), 731),
}

# Father, mother, child (inches): standard deviations and correlations of the 898 rows.
_HEIGHT_SD = (2.4703, 2.3070, 3.5829)
_HEIGHT_CORRELATION: Matrix = (
    (1.0, 0.07366461, 0.27535483),
    (0.07366461, 1.0, 0.20165489),
    (0.27535483, 0.20165489, 1.0),
)
_IQ_COVARIANCE: Matrix = ((416.596, 137.244), (137.244, 225.0))

CASES = (*_CHAINS, "galton", "iq")
"""Names of the reference cases."""


def reference_case(name: str) -> ReferenceCase:
    """Return one of the models of the comparison.

    Parameters
    ----------
    name : str
        One of :data:`CASES`.

    Examples
    --------
    >>> reference_case("electricity-80").model.size
    731
    """
    name = check_choice(name, "name", choices=CASES)
    builders: dict[str, Callable[[], ReferenceCase]] = {"galton": _galton, "iq": _iq}
    return builders[name]() if name in builders else _chain(name)


def _chain(name: str) -> ReferenceCase:
    from undertow.correlation.markov.chain import MarkovChain
    from undertow.correlation.query import CountQuery

    transition, length = _CHAINS[name]
    return ReferenceCase(name, MarkovChain(transition, length=length), CountQuery())


def _galton() -> ReferenceCase:
    covariance = [
        [r * _HEIGHT_SD[i] * _HEIGHT_SD[j] for j, r in enumerate(row)]
        for i, row in enumerate(_HEIGHT_CORRELATION)
    ]
    return _gaussian("galton", covariance, (0.0, 100.0))


def _iq() -> ReferenceCase:
    return _gaussian("iq", [list(row) for row in _IQ_COVARIANCE], (40.0, 160.0))


def _gaussian(
    name: str, covariance: list[list[float]], clip: tuple[float, float]
) -> ReferenceCase:
    from undertow.correlation.gaussian.model import Gaussian
    from undertow.correlation.query import LinearQuery

    model = Gaussian(covariance=covariance)
    return ReferenceCase(name, model, LinearQuery(clip=clip))
