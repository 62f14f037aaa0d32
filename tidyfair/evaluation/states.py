"""The statuses of the values of groups by what they mean for a comparison, and the codes that stand for them."""

from __future__ import annotations

from tidyfair.errors import Status

__all__: list[str] = []

TEXTS = [status.value for status in Status]
"""The texts of all statuses, in the order of their codes."""
VALUED = [status for status in Status if status.code <= Status.METRICS_LEFT_OUT.code]
"""The statuses in which there is a number."""
LAST_DEFINED = Status.BELOW_MIN_SHARE.code
"""Groups with a status up to this one have a value, or are left out on purpose; those beyond have none."""
DEFINED = [status for status in Status if status.code <= LAST_DEFINED]
NOT_PRESENT = (Status.LEFT_OUT, Status.UNKNOWN)
"""The statuses of groups that no comparison is about."""
UNDEFINED = len(Status)
"""The code of groups without a value; their reasons, which may be free text, are kept beside the codes."""
NO_LEVEL = -1
"""The level of values that are about all labels, or about the event."""
PART = "part"
"""The column that is 1 for metrics of a disparity that is subtracted from another one, and 0 for all other metrics."""
