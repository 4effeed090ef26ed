"""`python -m arq_graph` is the command `arq-graph`."""

from arq_graph.cli import main

main()
