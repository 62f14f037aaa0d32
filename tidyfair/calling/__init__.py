"""One call: metrics, groupwise metrics and metric sets come in, and what a call gives, or adds up, goes out."""
