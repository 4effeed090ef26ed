"""An app or a tool that hangs for ever: a run of it comes to its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from arq_graph.milestones.reports.report import read_report

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("what", ["app", "tool"])
def test_its_conversations_end_at_their_limit_and_the_program_ends_too(tmp_path, what):
    file = tmp_path / "report.json"
    command = [sys.executable, "-m", "tests.slow.hanging_evaluation", what, str(file)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert read_report(file).summary.arms["hangs"].ended == {"seconds": 40}
