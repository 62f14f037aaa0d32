"""The command line as `python -m tidyfair`."""

from tidyfair.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
