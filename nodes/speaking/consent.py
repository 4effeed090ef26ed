"""Whether the customer has agreed to a call: by a plain yes to a question that put just this call to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from arq_graph.agent.state import ToolInsight
from arq_graph.nodes.agreement import asks_something, repeats_what_was_put, says_yes
from arq_graph.nodes.asking_for_yes import Deed, is_foreign
from arq_graph.nodes.confirmation import NOT_AGREED, as_put, is_affirmed, put_before
from arq_graph.nodes.planned_actions import Situation
from arq_graph.nodes.putting import unnamed
from arq_graph.nodes.speaking.grounds import is_number
from arq_graph.nodes.speaking.questions import question_for
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.reasoning.conversation import Line
from arq_graph.reasoning.sections import as_json


@dataclass(frozen=True)
class Consent:
    """What the customer agreed to, of the calls of one tool.

    Args:
        tool: The tool.
        situation: The thread, and the calls that were put to the customer.
        consequential: What each tool does whose calls the customer has to agree to.
        agrees: What a yes is; None: what `says_yes` takes for one.
    """

    tool: ToolArguments
    situation: Situation
    consequential: Mapping[str, str]
    agrees: Callable[[str], bool] | None

    def to_be_told(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What a customer has to hear of a call: what is given, and what the tool takes for a number that is not.

        A flag that is left as the tool has it need not be said, nor a number of 1 or less: "a room" is one.
        """
        defaults = self.tool.defaults
        told = dict(arguments)
        for name, value in defaults.items():
            if name not in arguments and is_number(value) and abs(value) > 1:
                told[name] = value
            elif isinstance(value, bool) and told.get(name) is value:
                del told[name]
        return told

    def is_given(self, call: ToolInsight, chosen: Any) -> bool:
        """Whether the message that the model names affirms a call.

        Args:
            call: The call.
            chosen: The model's answer, with `affirmed_in`.
        """
        conversation = self.situation.conversation
        put = [*as_put(self.situation.pending, call, self.tool.settled), *self._put_in_words(call)]
        if not is_affirmed(call, put, chosen, conversation, self.agrees):
            return False
        return self._says_yes_to(call.arguments, conversation.by_id[chosen.affirmed_in.strip()])

    def agreed(self, arguments: Mapping[str, Any]) -> set[str]:
        """The arguments whose very value was put to the customer, who has just said yes."""
        line = self.situation.conversation.last_customer_line
        put = [insight.arguments for insight in self.situation.pending if insight.tool == self.tool.name]
        return {
            name
            for each in put
            if line is not None and self._says_yes_to(each, line)
            for name, value in arguments.items()
            if name in each and each[name] == value
        }

    def _put_in_words(self, call: ToolInsight) -> Iterator[ToolInsight]:
        """The call, if the agent's last words put it to the customer, though no record says that it was proposed.

        Models ask before they propose, and a graph may keep nothing but messages. One word covers one call.
        """
        conversation, name = self.situation.conversation, self.tool.name
        last = conversation.last_customer_line
        if last is None or name not in self.consequential:
            return
        if any(made.tool in self.consequential for made in self.situation.run):
            return
        before = conversation.lines[: conversation.lines.index(last)]
        spoken = next((line for line in reversed(before) if line.speaker == "agent"), None)
        told = {"arguments": self.to_be_told(call.arguments), "problem": NOT_AGREED, "kind": "confirm"}
        if spoken is not None and self._is_put_in(spoken.message.text, call.model_copy(update=told)):
            yield call.model_copy(update={"turn": spoken.id})

    def _is_put_in(self, text: str, call: ToolInsight) -> bool:
        own = question_for([call], {call.tool: self.tool.labels}, self.consequential)
        if text == own:
            return True
        if is_foreign(text) or not asks_something(text):
            return False
        put = [
            tool
            for tool, description in self.consequential.items()
            if not unnamed(call.model_copy(update={"tool": tool}), text, description)
        ]
        return put == [call.tool]  # "Shall I cancel A-1?" may be about an order, or about a subscription

    def _says_yes_to(self, arguments: Mapping[str, Any], line: Line) -> bool:
        """Whether a message of the customer's is a yes to a call with these arguments, put to them just before."""
        text = line.message.text
        if self.agrees is not None:
            return self.agrees(text) is True
        description = self.tool.tool.description
        asked = put_before(line, self.situation.conversation)
        put = f"{asked} {self.tool.name.replace('_', ' ')} {description} {as_json(arguments)}"
        deed = Deed.of(self.tool.name, arguments, description)
        return says_yes(text, put) or (repeats_what_was_put(text, put) and deed.is_spoken_of(text))
