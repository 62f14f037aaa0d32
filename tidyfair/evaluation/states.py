"""The states of the values of groups: why one has no value, or is not compared."""

from __future__ import annotations

from tidyfair.specs.aggregates import SUPPRESSED

__all__: list[str] = []

VALUED = ["ok", "infinite", "levels_left_out", "metrics_left_out"]
"""The states in which there is a number."""
STATED = [*VALUED, "left_out", "missing_values", "below_min_n"]
"""The states of a group other than having no value, which goes by the reason for it."""
STATES = [*STATED, SUPPRESSED]
LAST_STATED, UNDEFINED = len(STATED) - 1, len(STATES)
NO_LEVEL = -1
"""In place of a label, for what is about all labels (or the event)."""
PART = "part"
"""Whether a metric belongs to the disparity itself (0), or to the one that is subtracted from it (1)."""
