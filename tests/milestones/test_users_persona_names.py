"""A persona that does not exist is told in sentences that can be read."""

import pytest

from arq_graph.errors import SpecError
from arq_graph.milestones.users.personas import persona_of


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nope", "there is no persona 'nope'. Shipped are plain, "),
        ("impatent", "did you mean 'impatient'? Shipped"),
    ],
)
def test_an_unknown_persona_is_told_with_those_that_there_are(name, said):
    with pytest.raises(SpecError) as raised:
        persona_of(name)
    assert said in str(raised.value)
