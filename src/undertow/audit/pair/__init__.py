"""Audits of a pair of inputs: one event that tells them apart, by trials fixed or not.

The runs are drawn, made into rows of numbers, scored; a pair and an event are chosen on
one half, and counted on the other.
"""

from undertow.audit.pair.fixed import audit_pair, pair_trials_needed
from undertow.audit.pair.sequential import audit_pair_until_refuted

__all__ = ["audit_pair", "audit_pair_until_refuted", "pair_trials_needed"]
