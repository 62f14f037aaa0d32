"""Gates: verdicts about limits, of metrics and of comparisons."""
