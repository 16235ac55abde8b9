"""A view given by its table of values, for the exact engine on listed domains."""

from dataclasses import dataclass

from undertow.spaces.base import View
from undertow.spaces.domain import FiniteDomain

__all__ = ["Labels"]


@dataclass(frozen=True)
class Labels(View):
    """Label number `database`; the view of an enumerated domain 0..n-1."""

    labels: tuple[int, ...]
    name: str = "labels"

    def apply(self, database, domain):
        """Return the label."""
        return self.labels[database]

    def image(self, domain):
        """Return None: plain values come out."""
        return

    def require_domain(self, domain):
        """Require a listed domain."""
        assert isinstance(domain, FiniteDomain)
