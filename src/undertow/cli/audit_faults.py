"""Code with a known bug, as something to audit."""

from __future__ import annotations

from collections.abc import Sequence

from undertow._validate import check_choice
from undertow.audit.faults import FAULTS, Fault, named_fault
from undertow.cli.audit_results import Job
from undertow.cli.audit_tables import print_faults
from undertow.cli.output import print_json
from undertow.errors import ModelError
from undertow.privacy.result import to_plain

__all__ = ["fault_job", "list_faults", "read_fault"]


def read_fault(name: str) -> Fault:
    """Return a bug fixture by its name."""
    check_choice(name, "fault", choices=tuple(FAULTS))
    return named_fault(name)


def fault_job(name: str, *, repaired: bool, given: Sequence[str]) -> Job:
    """Return the audit of a bug fixture, which has its own claim and inputs.

    Parameters
    ----------
    name : str
        Of the fixture.
    repaired : bool
        Whether the code without the bug is run.
    given : sequence of str
        Options on the command line that describe another audit, by name.

    Raises
    ------
    ModelError
        If there are such.
    """
    _require_alone(given)
    fault = read_fault(name)
    state = "repaired" if repaired else "with its bug"
    return Job(
        (fault.repaired if repaired else fault.broken).subject,
        fault.claim,
        name=name,
        title=f"the fixture {name}, {state}",
        local=fault.method == "local",
        trials=fault.trials,
        pairs=fault.pairs,
        reader=fault.reader,
        score=fault.score,
    )


def _require_alone(given: Sequence[str]) -> None:
    if given:
        listed = ", ".join(f"--{name}" for name in given)
        raise ModelError(
            f"--fault must stand alone, as it has its own protocol, claim and threat, "
            f"got {listed} beside it; leave that out."
        )


def list_faults(*, given: Sequence[str], json_output: bool) -> None:
    """Print the bug fixtures, as a table or as JSON; `given` as for `fault_job`."""
    _require_alone(given)
    faults = [make() for make in FAULTS.values()]
    if not json_output:
        print_faults(faults)
        return
    rows = [
        {
            "name": fault.name,
            "bug": fault.bug,
            "claim": to_plain(fault.claim),
            "parameter": fault.claim.parameter,
            "level": to_plain(fault.level),
            "trials": fault.trials,
        }
        for fault in faults
    ]
    print_json({"faults": rows})
