"""All faults by name: what an audit is measured with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from undertow._validate import check_choice
from undertow_studies.faults.law import Fault
from undertow_studies.faults.noise import (
    data_bounds,
    endless_threshold,
    fixed_noise,
    float_noise,
    halved_noise,
    noiseless_queries,
    observed_keys,
    one_sided_noise,
    unhalved_exponent,
    variance_as_deviation,
    wrong_sensitivity,
)
from undertow_studies.faults.protocol import (
    certain_subset,
    double_report,
    forgotten_split,
    full_level_flip,
    missing_reset,
    raised_truth,
    value_seeded_hash,
    value_seeded_response,
    whole_domain_lie,
)

FAULTS: Mapping[str, Callable[[], Fault]] = MappingProxyType(
    {
        "certain-subset": certain_subset,
        "data-bounds": data_bounds,
        "double-report": double_report,
        "endless-threshold": endless_threshold,
        "fixed-noise": fixed_noise,
        "float-noise": float_noise,
        "forgotten-split": forgotten_split,
        "full-level-flip": full_level_flip,
        "halved-noise": halved_noise,
        "missing-reset-oue": partial(missing_reset, "oue"),
        "missing-reset-sue": partial(missing_reset, "sue"),
        "noiseless-queries": noiseless_queries,
        "observed-keys": observed_keys,
        "one-sided-noise": one_sided_noise,
        "raised-truth": raised_truth,
        "unhalved-exponent": unhalved_exponent,
        "value-seeded-hash": value_seeded_hash,
        "value-seeded-response": value_seeded_response,
        "variance-as-deviation": variance_as_deviation,
        "whole-domain-lie": whole_domain_lie,
        "wrong-sensitivity": wrong_sensitivity,
    }
)
"""Each fault by its name, at the parameters for which its trials are stated."""


def named_fault(name: str) -> Fault:
    """Return the fault of this name, at its stated parameters.

    Parameters
    ----------
    name : str
        One of `FAULTS`.

    Returns
    -------
    Fault
        With its claim, its laws and the trials at which it is found.

    Examples
    --------
    >>> named_fault("halved-noise").epsilon
    2.0
    """
    return FAULTS[check_choice(name, "name", choices=tuple(FAULTS))]()
