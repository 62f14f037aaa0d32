"""Gates: verdicts about limits, of metrics and of comparisons."""

# pyright: reportUnusedImport=false
from tidyfair.inference.gates.checks import (
    Gate, GroupsCompared, UnfairError, assert_fair, check, four_fifths, gate_of, judged_changes, judged_metrics,
    lacks_range, limited, out_of_range,
)  # fmt: skip
from tidyfair.inference.gates.texts import outside_of, share_in_words, unknown_in_words
from tidyfair.inference.gates.verdicts import FAIL, Outside, PASS, Side, UNSURE, with_verdicts
from tidyfair.inference.unknown_groups import UNKNOWN_ROWS, UNKNOWN_SHARE, WITH_UNKNOWN, with_unknown
