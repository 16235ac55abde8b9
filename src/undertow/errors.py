"""The exceptions of the package.

::

    UndertowError
    ├── AssumptionError (ValueError)       a theorem does not apply
    │   ├── VacuousGranularityError        the granularity has no neighbours here
    │   ├── UnboundedSensitivityError      pre-processing stretches without limit
    │   ├── IncompatiblePartitionError     one change touches several blocks
    │   ├── UnprovedDependencyError        nobody showed M reads only its view
    │   └── FalsifiedClaimError            a declared constant is false: see the pair
    ├── InfiniteLossError                  no finite loss holds: see the pair
    ├── MismatchError (ValueError)         spaces or sizes differ
    │   └── NotionMismatchError            losses of different notions were combined
    ├── CompositionError (ValueError)      this composition is not a theorem
    ├── BudgetError                        the budget does not allow it
    │   └── BudgetExceeded                 this spend would pass the budget
    ├── PlanError (ValueError)             a plan or file cannot be read as one
    └── SearchError                        a search found no root

Wrong types and ranges are plain ``TypeError`` and ``ValueError``.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AssumptionError",
    "BudgetError",
    "BudgetExceeded",
    "CompositionError",
    "FalsifiedClaimError",
    "IncompatiblePartitionError",
    "InfiniteLossError",
    "MismatchError",
    "NotionMismatchError",
    "PlanError",
    "SearchError",
    "UnboundedSensitivityError",
    "UndertowError",
    "UnprovedDependencyError",
    "VacuousGranularityError",
]


class UndertowError(Exception):
    """Root of the tree; carries what shows the problem and where it is stated.

    Parameters
    ----------
    message : str
        One sentence: argument, requirement, value, way out.
    witness : object, optional
        The concrete pair, change or release that shows the problem.
    source : str, optional
        The statement or example in the literature that explains it.
    """

    def __init__(
        self, message: str, *, witness: Any = None, source: str | None = None
    ) -> None:
        super().__init__(message)
        self.witness = witness
        self.source = source


class AssumptionError(UndertowError, ValueError):
    """A hypothesis of the theorem in use does not hold."""


class VacuousGranularityError(AssumptionError):
    """The granularity has no neighbours in the domain, so it promises nothing."""


class UnboundedSensitivityError(AssumptionError):
    """Pre-processing can stretch a unit change without limit."""


class IncompatiblePartitionError(AssumptionError):
    """One protected change can touch more than one block of the partition."""


class UnprovedDependencyError(AssumptionError):
    """The common-domain setting needs proof that a release reads only its view."""


class FalsifiedClaimError(AssumptionError):
    """A declared constant or certificate is contradicted by a concrete pair."""


class InfiniteLossError(UndertowError):
    """No finite loss holds for the pair carried as ``witness``."""


class MismatchError(UndertowError, ValueError):
    """Two arguments live on different spaces or have different sizes."""


class NotionMismatchError(MismatchError):
    """Losses of different privacy notions were combined without conversion."""


class CompositionError(UndertowError, ValueError):
    """The requested combination is not covered by a composition theorem."""


class BudgetError(UndertowError):
    """The budget does not allow what was asked."""


class BudgetExceeded(BudgetError):
    """The spend would pass the budget; nothing was charged."""


class PlanError(UndertowError, ValueError):
    """A plan or its file cannot be read as what it claims to be."""


class SearchError(UndertowError):
    """A numerical search found no bracket or did not converge."""
