"""Counting of rows: `source` opens a user's frame, and a tally holds its counts and sums."""
