"""Releases on parts of the data: what one change costs when it touches few of them.

Disjoint inputs are the case everybody knows, and the case most often claimed where it
does not hold. Each function here is one closed form of the composition theorem, with
its hypothesis as an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from undertow._validate import check_choice
from undertow.composition.finite_claims import ApproxProfile
from undertow.composition.parallel_moves import (
    bounded_parallel,
    bounded_profile,
    heaviest_move,
    move_cost_matrix,
)
from undertow.composition.parallel_overlap import largest, overlap_loss, top_m_loss
from undertow.composition.release import Setting
from undertow.errors import IncompatiblePartitionError
from undertow.privacy.loss import Approx, Loss

__all__ = [
    "ApproxProfile",
    "CertificateLike",
    "bounded_parallel",
    "bounded_profile",
    "heaviest_move",
    "move_cost_matrix",
    "overlap_loss",
    "parallel_max",
    "parallel_profile",
    "top_m_loss",
]


class CertificateLike(Protocol):
    """What is known of a partition and a granularity."""

    @property
    def touched(self) -> float | None:
        """The most blocks one change can touch; None where it is not known."""

    @property
    def nonexpansive(self) -> bool | None:
        """Whether a step moves each block by at most one step inside its domain."""

    @property
    def source(self) -> str | None:
        """Where it is proved."""


def parallel_max(
    losses: Sequence[Loss],
    *,
    certificate: CertificateLike | None = None,
    setting: Setting = "view",
) -> Loss:
    r"""Bound releases on the blocks of a compatible partition by the largest loss.

    .. math:: \varepsilon = \max_i \varepsilon_i

    Parameters
    ----------
    losses : sequence of Loss
        One per block, all of one notion and one unit, the target granularity.
    certificate : CertificateLike
        That one change touches at most one block, and in the view setting moves it by
        at most one step.
    setting : {"view", "common"}
        ``"view"``: each mechanism is private on its block; ``"common"``: each is
        private on the whole domain and reads only its block.

    Returns
    -------
    Loss
        Of an `Approx`, the maximum in each coordinate; :func:`parallel_profile` keeps
        the pairs apart.

    Raises
    ------
    IncompatiblePartitionError
        Without a certificate, or if it does not certify what the setting needs.

    Notes
    -----
    Paper, Theorems IV.6, V.4, VI.6, VI.16 and VI.26 (view); IV.12, V.6, A.13, A.15 and
    A.17 (common, where non-expansion is not needed). The printed A.13 and A.15 do not
    state compatibility, but are false without it. No losses cost nothing.
    """
    check_choice(setting, "setting", choices=("view", "common"))
    _require_compatible(certificate, setting)
    return largest(losses)


def parallel_profile(
    losses: Sequence[Approx],
    *,
    certificate: CertificateLike | None = None,
    setting: Setting = "view",
) -> ApproxProfile:
    """Bound approximate releases on a compatible partition, pair by pair.

    The arguments, the refusals and the source are those of :func:`parallel_max`.
    """
    parallel_max(losses, certificate=certificate, setting=setting)
    return ApproxProfile.of(losses)


def _require_compatible(certificate: CertificateLike | None, setting: Setting) -> None:
    if certificate is None:
        raise IncompatiblePartitionError(
            "certificate must show that one change touches one block, got None; "
            "check the partition with undertow.spaces.certificate, or add the losses.",
            source="paper, Theorem IV.6",
        )
    if certificate.touched is None or certificate.touched > 1:
        raise IncompatiblePartitionError(
            "certificate must show that one change touches at most one block, got "
            f"{certificate.touched} blocks; use top_m_loss or bounded_parallel.",
            witness=certificate,
            source=certificate.source,
        )
    if setting == "view" and certificate.nonexpansive is not True:
        raise IncompatiblePartitionError(
            "certificate must show that a step moves a block by at most one step, got "
            f"nonexpansive={certificate.nonexpansive}; prove the releases on the whole "
            "domain and use setting='common'.",
            witness=certificate,
            source=certificate.source,
        )
