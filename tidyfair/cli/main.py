"""The command line: `tidyfair audit` and its companions."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Sequence
from io import TextIOWrapper

import polars as pl

from tidyfair.cli.flags import as_flags, names_of
from tidyfair.cli.parser import parser
from tidyfair.cli.terminal import complain, unwatch
from tidyfair.errors import TidyfairError, advice_on_files
from tidyfair.tallies import find_fault

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    0 is success, 2 bad usage or data that cannot be read; with `--fail-if` 3 is a condition that holds, and 4 that
    there is not enough evidence.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # characters that a terminal lacks are escaped
            stream.reconfigure(errors="backslashreplace")
    every = parser()
    options = every.parse_args(arguments)
    if options.command is None:
        every.print_help()
        return 2
    given = sys.argv[1:] if arguments is None else arguments
    options.line = shlex.join(["tidyfair", *given])
    try:
        with advice_on_files():
            return options.run(options)
    except BrokenPipeError:
        # the reader of the output has gone, which is no error; neither is the flush of Python at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (TidyfairError, OSError, pl.exceptions.PolarsError) as error:
        complain(_in_words(error, options))
        return 2
    finally:
        unwatch()
    return 0


def _in_words(error: Exception, options: Namespace) -> str:
    """The message of an error in the words of the command line; of a csv file, with the line that cannot be read."""
    is_reading = not any("wrote" in note for note in getattr(error, "__notes__", ()))
    if options.file is not None and is_reading and not isinstance(error, TidyfairError):
        try:
            find_fault(options.file, options.separator, error)
        except (TidyfairError, OSError) as fault:
            error = fault
    notes = [f" ({note})" for note in getattr(error, "__notes__", ())]
    text = str(error)
    if isinstance(error, OSError) and error.strerror and error.filename:
        text = f"{str(error.filename)!r}: {error.strerror}."
    return as_flags(text, names_of(options.command)) + "".join(notes)
