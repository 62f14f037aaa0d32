"""Files and a terminal: a command line comes in, and tables, pages and an exit code go out."""
