"""The exceptions of the package.

::

    UndertowError
    ├── AssumptionError (ValueError)       a theorem does not apply
    │   ├── VacuousGranularityError        the granularity has no neighbours here
    │   ├── UnboundedSensitivityError      pre-processing stretches without limit
    │   ├── IncompatiblePartitionError     one change touches several blocks
    │   ├── UnprovedDependencyError        nobody showed M reads only its view
    │   ├── FalsifiedClaimError            a declared constant is false: see the pair
    │   ├── NotApplicable                  a method's hypotheses fail for this model
    │   └── InfeasibleTarget               no noise of this method reaches the target
    ├── InfiniteLossError                  no finite loss holds: see the pair
    ├── MismatchError (ValueError)         spaces or sizes differ
    │   └── NotionMismatchError            losses of different notions were combined
    ├── CompositionError (ValueError)      this composition is not a theorem
    ├── AuditError (ValueError)            what is audited misbehaves
    ├── DataError (ValueError)             a data file is missing or is another
    ├── EngineError                        a table engine failed
    ├── LimitReached                       a run met its limit of time or memory
    ├── LedgerError                        a ledger cannot be read, or was edited
    │   └── MissingLedger                  a database holds none
    ├── BudgetError                        the budget does not allow it
    │   ├── BudgetExceeded                 this spend would pass the budget
    │   └── OutdatedLedger (LedgerError)   a ledger is an older copy of itself
    ├── PlanError (ValueError)             a plan or file cannot be read as one
    ├── ModelError (ValueError)            a data model is malformed
    └── SearchError                        a search found no root

Wrong types and ranges are plain ``TypeError`` and ``ValueError``. What holds but should
be known is a warning::

    UndertowWarning (UserWarning)
    ├── EstimatedModelWarning              the model was fitted on the private data
    └── ScopeWarning                       the promise covers some secrets only
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AssumptionError",
    "AuditError",
    "BudgetError",
    "BudgetExceeded",
    "CompositionError",
    "DataError",
    "EngineError",
    "EstimatedModelWarning",
    "FalsifiedClaimError",
    "IncompatiblePartitionError",
    "InfeasibleTarget",
    "InfiniteLossError",
    "LedgerError",
    "LimitReached",
    "MismatchError",
    "MissingLedger",
    "ModelError",
    "NotApplicable",
    "NotionMismatchError",
    "OutdatedLedger",
    "PlanError",
    "ScopeWarning",
    "SearchError",
    "UnboundedSensitivityError",
    "UndertowError",
    "UndertowWarning",
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


class NotApplicable(AssumptionError):
    """A method cannot be used for this model, query or mechanism."""


class InfeasibleTarget(AssumptionError):
    """No noise of this method reaches the target.

    Parameters
    ----------
    message : str
        One sentence that names the method that can.
    least : float
        What the method cannot get below: targets must be strictly greater.
    """

    def __init__(
        self,
        message: str,
        *,
        least: float,
        witness: Any = None,
        source: str | None = None,
    ) -> None:
        super().__init__(message, witness=witness, source=source)
        self.least = least


class InfiniteLossError(UndertowError):
    """No finite loss holds for the pair carried as ``witness``."""


class MismatchError(UndertowError, ValueError):
    """Two arguments live on different spaces or have different sizes."""


class NotionMismatchError(MismatchError):
    """Losses of different privacy notions were combined without conversion."""


class CompositionError(UndertowError, ValueError):
    """The requested combination is not covered by a composition theorem."""


class AuditError(UndertowError, ValueError):
    """What is audited misbehaved, or cannot be audited as asked."""


class DataError(UndertowError, ValueError):
    """A data file is missing or is not what it should be."""


class EngineError(UndertowError):
    """A table engine failed; its own words may hold data and are not repeated."""


class LimitReached(UndertowError):
    """A run met the limit of time or memory that it was given."""


class LedgerError(UndertowError):
    """A ledger cannot be read or written, or what it holds was edited."""


class BudgetError(UndertowError):
    """The budget does not allow what was asked."""


class BudgetExceeded(BudgetError):
    """The spend would pass the budget; nothing was charged."""


class MissingLedger(LedgerError):
    """A database holds no ledger."""


class OutdatedLedger(LedgerError, BudgetError):
    """A ledger lacks what was charged to it: it is an older copy, or another branch."""


class PlanError(UndertowError, ValueError):
    """A plan or its file cannot be read as what it claims to be."""


class ModelError(UndertowError, ValueError):
    """A data model is malformed: it is no law of any data."""


class SearchError(UndertowError):
    """A numerical search found no bracket or did not converge."""


class UndertowWarning(UserWarning):
    """Root of the warnings: the result holds, and this should be known with it."""


class EstimatedModelWarning(UndertowWarning):
    """A model was fitted on the private data, or its sampling error was ignored."""


class ScopeWarning(UndertowWarning):
    """The promise covers some pairs of secrets only."""
