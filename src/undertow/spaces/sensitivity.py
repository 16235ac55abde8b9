r"""How far pre-processing stretches distances, and what that does to a loss.

The sensitivity of :math:`f` between two metric spaces is the least :math:`\Delta f`
with :math:`d_2(f(D), f(D')) \le \Delta f \cdot d_1(D, D')` for all pairs at finite
:math:`d_1`. A mechanism private on the image is private on the data, at
:math:`\Delta f` times the distance. The reverse is false: a guarantee for
:math:`M \circ f` says nothing about :math:`M` on its own domain.
"""

from __future__ import annotations

import math

from undertow.errors import UnboundedSensitivityError
from undertow.privacy.exact import Number, exact
from undertow.privacy.group import group
from undertow.privacy.loss import Loss
from undertow.spaces.sensitivity_check import falsify, verify_lipschitz
from undertow.spaces.sensitivity_exact import Sensitivity, sensitivity
from undertow.spaces.view_general import sensitivity_chain

__all__ = [
    "Sensitivity",
    "falsify",
    "preprocess",
    "sensitivity",
    "sensitivity_chain",
    "verify_lipschitz",
]


def preprocess(loss: Loss, constant: Number | None) -> Loss:
    r"""Return the loss of a mechanism after a map of given sensitivity.

    Parameters
    ----------
    loss : Loss
        Of the mechanism on the image, per unit of the target metric.
    constant : int, float, str, Decimal or Fraction, or None
        The sensitivity of the map; None, not known, counts as infinite.

    Returns
    -------
    Loss
        Per unit of the source metric: :math:`c\varepsilon`, :math:`c\mu`,
        :math:`c^2\rho`, or :math:`(c\varepsilon, \delta\,[c]_\varepsilon)` with
        :math:`[c]_\varepsilon = \sum_{j<c} e^{j\varepsilon}`.

    Raises
    ------
    UnboundedSensitivityError
        If the constant is infinite or not known.
    AssumptionError
        If an approximate loss meets a constant that is not whole: the sum comes from a
        chain of whole steps.

    Notes
    -----
    Thesis, Proposition A.3; paper, Proposition III.6, and Theorem VI.3 for the
    approximate rule. Keeping the pullback of the metric instead is sharper pair by
    pair. Not reversible: a loss of :math:`M \circ f` is no loss of :math:`M`.

    Examples
    --------
    >>> from undertow.privacy.loss import Pure
    >>> preprocess(Pure("0.5"), 3)
    Pure(epsilon=1.5)
    """
    factor = exact(math.inf if constant is None else constant, "constant")
    if factor == math.inf:
        raise UnboundedSensitivityError(
            "constant must be finite, got "
            f"{'none' if constant is None else 'inf'}; bound what one unit contributes "
            "by clipping or truncation first.",
            source="paper, Proposition III.6",
        )
    return group(loss, factor)
