"""Measure an agent on milestones in LangSmith's `evaluate`; here nothing is uploaded, and no key is needed.

    python examples/evaluators/langsmith_evaluate.py

For a data set in LangSmith, give its name as `data` and your app as the target, and leave out `upload_results` and
`client`. openevals and agentevals take the same evaluator.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

from langsmith import Client, evaluate
from langsmith.schemas import Example

from arq_graph.milestones import milestone_evaluator, read_milestones

RENTAL = Path(__file__).parent.parent / "score_any_agent"


def main() -> None:
    recorded: dict[str, dict[str, Any]] = {}
    for line in (RENTAL / "conversations.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        recorded[record["id"]] = record
    results = evaluate(
        lambda inputs: recorded[
            inputs["name"]
        ],  # in place of it: your app, which returns the whole conversation
        data=[Example(id=uuid4(), inputs={"name": name}) for name in recorded],
        evaluators=[milestone_evaluator(read_milestones(RENTAL / "milestones.yaml"))],
        upload_results=False,
        client=Client(api_key="none", info={}, auto_batch_tracing=False),
    )
    for row in results:
        for result in row["evaluation_results"]["results"]:
            metadata = result.metadata or {}
            figures = f"{result.score} [{metadata['low']}, {metadata['high']}]"
            print(f"{(row['example'].inputs or {})['name']:20} {result.key:16} {figures:24} {result.comment}")


if __name__ == "__main__":
    main()
