"""Hold the conversations of a suite on a Dask cluster, and keep all of them in one file here.

python examples/on_a_cluster.py SUITE.yaml openai:gpt-4o tcp://scheduler:8786

Without an address, Dask begins workers on this machine.
"""

import sys
from pathlib import Path

from distributed import Client

from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import Suite, evaluate, write_report


def main(suite: str, model: str, scheduler: str | None = None) -> None:
    """Hold what is still to be held; stopped or killed, it goes on when it is run again."""
    kept = Path(suite).with_suffix(".results.jsonl")
    with Client(scheduler) as client:
        report = evaluate(
            Suite.from_yaml(suite),
            load_arms(["guided", "direct"]),
            model=model,
            runs=2,
            concurrency=20,  # in each thread of each worker
            executor=client.get_executor(),
            workers=sum(client.nthreads().values()),
            results=kept,
            resume=kept.exists(),
        )
    write_report(kept.with_suffix(".report.json"), report)
    print(report.summary.overall)


if __name__ == "__main__":
    main(*sys.argv[1:])
