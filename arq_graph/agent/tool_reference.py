"""Tools as a specification names them: a tool, a function, or a reference to one."""

from __future__ import annotations

import re

from langchain_core.tools import BaseTool
from pydantic import ValidationInfo

from arq_graph.agent.mcp import load_mcp_tool
from arq_graph.agent.modules import load
from arq_graph.agent.tool_file import load_described_tool
from arq_graph.agent.tools import make_tool
from arq_graph.errors import SpecError

_IN_FILE = re.compile(r"\.ya?ml:")


def read_tool(value: object, info: ValidationInfo) -> BaseTool:
    """Read a LangChain tool, a function, "module:function", "file.yaml:tool" or "mcp:server/tool"."""
    document = info.context
    folder = document.folder if document else None
    if not isinstance(value, str):
        return make_tool(value)
    if value.startswith("mcp:"):
        return make_tool(load_mcp_tool(value, document))
    if _IN_FILE.search(value):
        return make_tool(load_described_tool(value, folder))
    if ":" not in value:
        raise SpecError(f'must be "module:function" or "file.yaml:name", but is {value!r}')
    return make_tool(load(value, folder))
