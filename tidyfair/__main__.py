"""`python -m tidyfair` is the command line."""

from tidyfair.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
