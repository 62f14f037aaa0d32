"""What can be said of few rows, of people whose group is only probable, and of truth that is missing."""
