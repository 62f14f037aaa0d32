"""What an audit looks at: the columns that are given come in, and the metrics to report go out."""
