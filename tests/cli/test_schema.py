"""`arq-graph schema`: what an editor needs to complete and check a file."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.cli.conftest import Cli

DESK = Path(__file__).parents[2] / "examples" / "order_desk"


@pytest.mark.parametrize("kind", ["agent", "milestones", "suite"])
def test_a_schema_takes_the_shipped_file_and_refuses_an_unknown_key(cli: Cli, kind: str) -> None:
    schema = json.loads(cli("schema", kind).out)
    held = yaml.safe_load((DESK / f"{kind}.yaml").read_text())
    jsonschema.validate(held, schema)
    held = held if isinstance(held, dict) else {"milestones": held}
    with pytest.raises(jsonschema.ValidationError, match="profil"):
        jsonschema.validate({**held, "profil": "a misspelt key"}, schema)
