"""From rows to cells: a user's frame comes in at `source`, and a tally of counts and sums goes out."""
