"""The command line as `tidyfair` and `python -m tidyfair`."""

_INTERRUPTED = 130
"""The exit code of a command that was interrupted, as shells have it."""


def main() -> int:
    """Run the command line; an interrupt ends it without a traceback, also while it is imported."""
    try:
        from tidyfair.cli import main as command_line  # noqa: PLC0415 - importing takes long enough to be interrupted

        return command_line.main()
    except KeyboardInterrupt:
        return _INTERRUPTED


if __name__ == "__main__":
    raise SystemExit(main())
