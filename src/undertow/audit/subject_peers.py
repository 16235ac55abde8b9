"""Mechanisms of other libraries as subjects: OpenDP, diffprivlib, client functions.

None of these libraries is imported: an object with the method in question is enough.
Their noise is their own, so an audit of them can be described but not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

from undertow.audit.outputs import shortened
from undertow.audit.subject_callable import CallableSubject
from undertow.errors import AuditError

__all__ = ["ClientSubject", "DiffprivlibSubject", "OpenDPSubject"]

# The measure of OpenDP whose loss is an epsilon.
_PURE = "MaxDivergence"


class OpenDPSubject(CallableSubject):
    """A measurement of OpenDP.

    Parameters
    ----------
    measurement : opendp.Measurement
        Called with one input at a time.
    inputs : sequence
        Members of its input domain, every two of them at the distance of the claim.
    time_limit : float, optional
        Seconds that one batch may take; a call takes some 0.1 ms.
    name : str, optional
        For the report.

    Notes
    -----
    OpenDP draws from the operating system, so copies are independent and no seed
    repeats a run. `stated` is the epsilon that a pure measurement states of itself;
    of others the claim is yours to state.
    """

    to_repeat = "run it without, as its noise is its own"

    def __init__(
        self,
        measurement: Any,
        inputs: Sequence[Any],
        *,
        time_limit: float = 600.0,
        name: str = "OpenDP measurement",
    ) -> None:
        if not callable(measurement) or not hasattr(measurement, "map"):
            raise TypeError(
                f"measurement must be one of OpenDP, got {type(measurement).__name__}."
            )
        super().__init__(
            lambda value: measurement(value),
            inputs,
            time_limit=time_limit,
            name=name,
            version=_version_of("opendp"),
        )
        self.measurement = measurement
        self.forkable = False  # a measurement cannot be sent to another process

    def stated(self, distance: Any) -> Any:
        """Return the epsilon of pure DP that the measurement states at a distance.

        Parameters
        ----------
        distance : number
            Of the inputs, in the input metric of the measurement.

        Returns
        -------
        float
            For :meth:`~undertow.audit.claim.Claim.pure`.

        Raises
        ------
        AuditError
            If the measurement states another loss, such as rho of zCDP, which read as
            an epsilon would accuse correct code; or nothing at this distance.
        """
        measure = str(getattr(self.measurement, "output_measure", "unknown"))
        if measure != _PURE:
            raise AuditError(
                f"measurement must state pure DP ({_PURE}), got {measure}; state the "
                "claim yourself, by Claim.approx or Claim.gaussian."
            )
        try:
            return self.measurement.map(distance)
        except Exception as error:  # OpenDP's own class, in several lines
            raise AuditError(
                f"distance must be one that the measurement has a loss for, got "
                f"{distance!r}: {type(error).__name__}: {shortened(str(error))}."
            ) from error


class DiffprivlibSubject(CallableSubject):
    """A mechanism of diffprivlib.

    Parameters
    ----------
    mechanism : object with ``randomise(value)``
        Such as ``diffprivlib.mechanisms.Laplace(epsilon=1, sensitivity=1)``.
    inputs : sequence
        The values, every two of them neighbours.
    time_limit : float, optional
        Seconds that one batch may take.

    Examples
    --------
    >>> import numpy as np
    >>> class Constant:
    ...     def randomise(self, value):
    ...         return 7
    >>> subject = DiffprivlibSubject(Constant(), [0, 1])
    >>> subject.sample(0, 2, rng=np.random.default_rng(1))
    array([7, 7])
    """

    to_repeat = "run it without, as its noise is its own"

    def __init__(
        self, mechanism: Any, inputs: Sequence[Any], *, time_limit: float = 600.0
    ) -> None:
        randomise = getattr(mechanism, "randomise", None)
        if not callable(randomise):
            raise AuditError(
                "mechanism must have a method randomise(value), got "
                f"{type(mechanism).__name__}; use CallableSubject."
            )
        super().__init__(
            lambda value: randomise(value),
            inputs,
            time_limit=time_limit,
            name=f"diffprivlib {type(mechanism).__name__}",
            version=_version_of("diffprivlib"),
        )
        self.mechanism = mechanism


class ClientSubject(CallableSubject):
    """The client side of a local protocol: a function from a value to a report.

    Parameters
    ----------
    privatise : callable
        Takes one value; such as ``client.privatise`` of pure-ldp, or
        ``functools.partial(GRR_Client, k=k, epsilon=epsilon)`` of multi-freq-ldpy.
    inputs : sequence
        The values that a client may hold.
    library : str, optional
        Name of the installed distribution, for the version in the report.
    time_limit : float, optional
        Seconds that one batch may take.

    Notes
    -----
    Reports that are vectors of bits or pairs of a seed and a bucket are vectors here.
    Bit vectors of up to some thousand different values are compared as wholes; beyond,
    and for hashing, give the audit a score.

    Examples
    --------
    >>> import numpy as np
    >>> one_hot = ClientSubject(lambda value: np.eye(3, dtype=int)[value], [0, 1, 2])
    >>> one_hot.sample(2, 2, rng=np.random.default_rng(1)).tolist()
    [[0, 0, 1], [0, 0, 1]]
    """

    to_repeat = "run it without, as its noise is its own"

    def __init__(
        self,
        privatise: Callable[[Any], Any],
        inputs: Sequence[Any],
        *,
        library: str | None = None,
        time_limit: float = 600.0,
    ) -> None:
        if not callable(privatise):
            raise TypeError(
                f"privatise must be callable, got {type(privatise).__name__}."
            )
        super().__init__(
            lambda value: privatise(value),
            inputs,
            time_limit=time_limit,
            name=getattr(privatise, "__name__", "client"),
            version="" if library is None else _version_of(library),
        )
        self.privatise = privatise


def _version_of(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""
