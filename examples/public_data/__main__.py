"""Turn a public data set into a suite for `arq-graph evaluate`.

    python -m examples.public_data webshop WebShop/data my-webshop 100

FOLDER is the data set as it was unpacked, OUT a new folder, LIMIT how many tasks to write at most.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from arq_graph.errors import InputError
from examples.public_data.alfworld import write_alfworld_suite
from examples.public_data.multiwoz import write_multiwoz_suite
from examples.public_data.webshop import write_webshop_suite

WRITERS = {"webshop": write_webshop_suite, "multiwoz": write_multiwoz_suite, "alfworld": write_alfworld_suite}


def main() -> None:
    """Write the suite, or print what is wrong and exit with 1."""
    parser = argparse.ArgumentParser(prog="python -m examples.public_data")
    parser.add_argument("data_set", choices=WRITERS)
    parser.add_argument("folder", type=Path, help="the unpacked data set")
    parser.add_argument("out", type=Path, help="a new folder for the suite")
    parser.add_argument("limit", type=int, nargs="?", help="how many tasks to write at most")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    write_suite = WRITERS[arguments.data_set]
    limit = {} if arguments.limit is None else {"limit": arguments.limit}
    try:
        write_suite(arguments.folder, arguments.out, **limit)
    except (InputError, OSError) as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
