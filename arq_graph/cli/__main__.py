"""`python -m arq_graph.cli`."""

from arq_graph.cli import main

main()
