"""Which model the commands ask: what the options, the environment and a `.env` file say."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from arq_graph.errors import InputError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

OFFLINE = "offline"
WITH_A_KEY = "openai:gpt-4o"
NO_KEY = (
    "No model and no key is set: the offline model answers, which compares words and understands nothing. Set "
    "OPENAI_API_KEY for a real one, or give --model, with --base-url for a server of your own."
)
_ADDRESSES = ("ARQ_GRAPH_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE")
_KEY = "OPENAI_API_KEY"


@dataclass(frozen=True)
class ModelChoice:
    """The model that a command asks."""

    spec: str
    base_url: str | None = None
    notice: str = ""

    @property
    def name(self) -> str:
        """The model as it is shown."""
        if self.spec == OFFLINE:
            return "offline model"
        return f"{self.spec} at {self.base_url}" if self.base_url else self.spec

    def chat_model(self) -> BaseChatModel:
        """Make the model."""
        from arq_graph.models.resolve import chat_model

        return chat_model(self.spec, base_url=self.base_url)


def choose_model(model: str | None, base_url: str | None) -> ModelChoice:
    """Choose the model: the option, else `ARQ_GRAPH_MODEL`, else what the keys allow."""
    spec = (model or os.environ.get("ARQ_GRAPH_MODEL") or "").strip()
    if spec == OFFLINE and not base_url:
        return ModelChoice(OFFLINE)
    endpoint = (base_url or os.environ.get("ARQ_GRAPH_BASE_URL") or "").strip() or None
    if endpoint and not endpoint.startswith(("http://", "https://")):
        raise InputError(f"the base URL {endpoint!r} must begin with http:// or https://")
    if spec:
        return ModelChoice(spec, endpoint)
    if endpoint:
        raise InputError(
            f"the endpoint {endpoint} is set, but no model: name one of its models with --model or "
            "ARQ_GRAPH_MODEL"
        )
    if os.environ.get(_KEY):
        return ModelChoice(WITH_A_KEY, notice=f"{_KEY} is set: asking {WITH_A_KEY}; --model takes another.")
    return ModelChoice(OFFLINE, notice=NO_KEY)


def choose_models(
    model: str | None, user_model: str | None, judge: str | None, base_url: str | None
) -> tuple[ModelChoice, ModelChoice | None, ModelChoice | None]:
    """The models of the arms, of the users and of the judge; the base URL is for those that take one."""
    arms = (model or os.environ.get("ARQ_GRAPH_MODEL") or "").strip()
    specs = (arms, *(each.strip() for each in (user_model, judge) if each))
    # Where no model takes an address it is given to all, so that it is refused.
    somebody_takes_it = any(spec != OFFLINE for spec in specs)

    def url_of(spec: str) -> str | None:
        return None if somebody_takes_it and spec.strip() == OFFLINE else base_url

    return (
        choose_model(model, url_of(arms)),
        choose_model(user_model, url_of(user_model)) if user_model else None,
        choose_model(judge, url_of(judge)) if judge else None,
    )


def installed_version() -> str:
    """The version of this package."""
    try:
        return version("arq_graph")
    except PackageNotFoundError:
        return "(not installed)"


def load_env_file(path: Path, environ: MutableMapping[str, str]) -> Iterator[str]:
    """Take over what a `.env` file sets and the environment does not; nothing in a value is expanded."""
    from dotenv import dotenv_values

    if not path.is_file():
        return
    unread = _Remarks()
    log = logging.getLogger("dotenv.main")
    log.addHandler(unread)
    try:
        found = dotenv_values(path, interpolate=False, encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        yield f"{path} is not read: {error}"
        return
    finally:
        log.removeHandler(unread)
    yield from (f"{path}: {remark}" for remark in unread.said)
    has_own_key = _KEY in environ
    taken = {name: value for name, value in found.items() if value is not None and name not in environ}
    for name, value in taken.items():
        try:
            environ[name] = value
        except ValueError as error:  # a null character
            yield f"{path}: {name} is not read: {error}"
    for name in _ADDRESSES:
        if has_own_key and name in taken:
            yield (
                f"{path} sets {name} to {taken[name]}: the {_KEY} of your environment will be sent there. Put a key "
                f"into {path} as well, or give --base-url, if that is not what you want."
            )


class _Remarks(logging.Handler):
    """What the reader of `.env` files complains about."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a complaint."""
        self.said.append(record.getMessage())
