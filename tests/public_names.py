"""Public names by the names that metrics and tables have, wherever in the library they are."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import tidyfair
from tidyfair.metrics.other_names import places


def public(name: str) -> Any:
    """What the library has under a name, as `concordance_survival` for `tidyfair.survival.concordance`."""
    return attrgetter(places()[name])(tidyfair)
