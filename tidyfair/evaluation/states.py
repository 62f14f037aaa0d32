"""The statuses of the values of groups, classified by their effect on a comparison, and their codes."""

from __future__ import annotations

from tidyfair.errors import Status

TEXTS = [status.value for status in Status]
"""The texts of all statuses, in the order of their codes."""
VALUED = [status.value for status in Status if status.code <= Status.METRICS_LEFT_OUT.code]
"""The statuses of values that are numbers, as texts."""
LAST_DEFINED = Status.BELOW_MIN_SHARE.code
"""Groups with a status up to this one have a value or are left out on purpose; all others have no value."""
OUTSIDE = [Status.UNKNOWN.value, Status.BELOW_MIN_N.value, Status.BELOW_MIN_SHARE.value]
"""The statuses of groups outside the policy of a metric, as texts."""
UNDEFINED = len(Status)
"""The code of groups without a value; their reasons, which may be free text, are stored separately."""
NO_LEVEL = -1
"""The level of values for all labels, or for the event."""
PART = "part"
"""The column that is 1 for metrics of a disparity that is subtracted from another one, and 0 for all other metrics."""
