"""From cells to values: a tally comes in, and values of groups, disparities and tidy frames go out."""
