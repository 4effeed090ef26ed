"""TextWorld's games as worlds to act in (Côté et al. 2019): the kind of world of ReSpAct's household tasks (3.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from arq_graph import Observation, errors

INSTALL = 'pip install "arq_graph[textworld]"'

_MAX_SEED = 2**31 - 3
# Larger games take minutes to make, and the time grows much faster than they do.
_MOST = 50
_HEADER = 64
# A story file states its own length in units that depend on its version (Z-Machine Standards Document, 11.1.6).
_UNIT = {1: 2, 2: 2, 3: 2, 4: 4, 5: 4, 6: 8, 7: 8, 8: 8}
_STATUS_LINE = re.compile(r"\s*>\s*-= .* =-\s*-?\d+/-?\d+\s*\Z")
_QUESTION_AT_THE_END = re.compile(r"\s*Would you like to RESTART, [^\n]*\Z")

_REFUSED = "Nothing happened: that is not one of the actions that are possible now."
_OVER = "Nothing happened: the game is over."


class TextWorldEnvironment:
    """A TextWorld game as an `Environment`.

    It takes the actions that are possible now and no others, whatever their case and spacing. All else is refused
    here and never reaches the interpreter, whose own commands (`quit`, `save`, `undo`) are no part of the world.
    Close it when done, or use it in a `with`; `reset` opens it again.

    Args:
        game: A game that `tw-make` or `make_text_game` made: its `.z8`, with the `.json` beside it.
        seed: What chance depends on, 0 to 2,147,483,645.
        show_objective: Whether the first observation begins with what there is to do; False where a person gives
            the task.

    Attributes:
        done: Whether the game has ended, won or lost.
        score: The points so far; None before the first `reset`.
        won: Whether the game was won.
        max_score: The most points that can be had.
        objective: What there is to do, in words.
        walkthrough: Actions that win from the beginning, in order; empty where the game brings none.

    Raises:
        InputError: TextWorld is not installed, the game cannot be read, or the seed is out of its range.
    """

    def __init__(self, game: str | Path, *, seed: int = 0, show_objective: bool = True) -> None:
        self._textworld = _textworld()
        self._path = Path(game)
        described = _read_game(self._textworld, self._path)
        self._seed = _checked_seed(seed)
        self._show_objective = show_objective
        self._playing: Any = None
        self._possible: tuple[str, ...] = ()
        self.max_score: float = described.max_score
        self.objective: str = described.objective
        self.walkthrough: tuple[str, ...] = tuple(described.metadata.get("walkthrough") or ())
        self.done: bool = False
        self.won: bool = False
        self.score: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def reset(self) -> str:
        """Begin the game anew."""
        if self._playing is None:
            wanted = self._textworld.EnvInfos(admissible_commands=True, score=True, won=True, lost=True)
            self._playing = self._textworld.start(str(self._path), wanted)
        # To the interpreter 0 means "take the time".
        self._playing.seed(self._seed + 1)
        self.done = self.won = False
        text = self._seen(self._playing.reset())
        banner, found, rest = text.partition(self.objective) if self.objective else ("", "", text)
        if not found:
            return banner
        rest = rest.strip()
        return f"{self.objective}\n\n{rest}" if self._show_objective else rest

    def step(self, action: str) -> Observation:
        """Take an action; one that is not possible now is refused and changes nothing.

        Args:
            action: One of `actions()`.

        Raises:
            InputError: The game was not begun with `reset`, or is closed.
        """
        if self._playing is None:
            raise errors.InputError(f"{self._path.name} is not being played: call reset() first")
        if self.done:
            return Observation(_OVER, valid=False)
        command = _as_listed(action, self._possible)
        if command is None:
            return Observation(_REFUSED, valid=False)
        state, _, _ = self._playing.step(command)
        return Observation(self._seen(state))

    def actions(self) -> Sequence[str]:
        """The actions that are possible now, in alphabetical order; none once the game is over."""
        return () if self.done else self._possible

    def close(self) -> None:
        """Free the interpreter; closing twice does nothing."""
        if self._playing is not None:
            self._playing.close()
        self._playing = None
        self._possible = ()

    def _seen(self, state: Any) -> str:
        self._possible = tuple(state.admissible_commands or ())
        self.score = state.score
        self.won = bool(state.won)
        self.done = self.won or bool(state.lost)
        return _cleaned(state.feedback)


def make_text_game(
    folder: str | Path, *, seed: int, rooms: int = 3, objects: int = 6, quest_length: int = 4
) -> Path:
    """Make a game of TextWorld's house; it takes some seconds. The same numbers make the same game.

    Args:
        folder: Where to write it; made if it is missing.
        seed: What chance depends on, 0 to 2,147,483,645.
        rooms: How many rooms there are, 1 to 50.
        objects: How many things there are, 1 to 50.
        quest_length: How many actions winning takes, 1 to 50.

    Returns:
        The game's file, a `.z8` with a `.json` beside it.

    Raises:
        InputError: TextWorld is not installed, a number is out of its range, or there is no such game.
    """
    textworld = _textworld()
    for name, number in (("rooms", rooms), ("objects", objects), ("quest_length", quest_length)):
        if not 1 <= number <= _MOST:
            raise errors.InputError(f"{name} is {number}: it must be from 1 to {_MOST}")
    options = textworld.GameOptions()
    options.seeds = _checked_seed(seed)
    options.nb_rooms, options.nb_objects, options.quest_length = rooms, objects, quest_length
    path = Path(folder) / f"house-{rooms}-{objects}-{quest_length}-{seed}.z8"
    path.parent.mkdir(parents=True, exist_ok=True)
    options.path, options.force_recompile = str(path), True
    from textworld.generator import CouldNotCompileGameError, QuestGenerationError

    try:
        textworld.make(options)
    except (CouldNotCompileGameError, QuestGenerationError) as error:
        raise errors.InputError(f"TextWorld could not make {path.name}; try another seed: {error}") from error
    return path


def _textworld() -> Any:
    try:
        import textworld
    except ImportError as error:
        raise errors.InputError(f"text games need TextWorld, which is not installed: {INSTALL}") from error
    return textworld


def _checked_seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= _MAX_SEED:
        raise errors.InputError(f"seed is {seed!r}: it must be a whole number from 0 to {_MAX_SEED:,}")
    return seed


def _read_game(textworld: Any, path: Path) -> Any:
    described = path.with_suffix(".json")
    if not re.fullmatch(r"\.z[1-8]", path.suffix):
        raise errors.InputError(f"{path} is no game: give the .z8 that tw-make or make_text_game writes")
    for file in (path, described):
        if not file.is_file():
            raise errors.InputError(
                f"{file} is missing: a game is its .z8 and the .json that was made with it"
            )
    if not _is_whole(path.read_bytes()):
        raise errors.InputError(f"{path} is damaged, or no story file: make the game again")
    try:
        return textworld.Game.load(str(described))
    # What a broken description raises depends on where it is broken.
    except Exception as error:
        raise errors.InputError(f"{described} does not describe a game of TextWorld: {error!r}") from error


def _is_whole(story: bytes) -> bool:
    """Whether a story file's own checksum holds. The interpreter ends the whole process over one that is cut off."""
    if len(story) < _HEADER or story[0] not in _UNIT:
        return False
    length = _UNIT[story[0]] * int.from_bytes(story[0x1A:0x1C])
    checksum = int.from_bytes(story[0x1C:0x1E])
    return _HEADER <= length <= len(story) and sum(story[_HEADER:length]) % 0x10000 == checksum


def _as_listed(action: str, possible: Sequence[str]) -> str | None:
    wanted = " ".join(action.split()).casefold()
    return next((command for command in possible if command.casefold() == wanted), None)


def _cleaned(feedback: str) -> str:
    """What the game says, without the status line and the interpreter's question at the end."""
    text = _QUESTION_AT_THE_END.sub("", _STATUS_LINE.sub("", feedback))
    return re.sub(r"\n\s*\n", "\n\n", text).strip()
