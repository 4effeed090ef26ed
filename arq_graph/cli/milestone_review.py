"""`arq-graph milestones review`: a walk through a milestone file; each decision is kept at once."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from rich.console import Console

from arq_graph.cli.failures import note
from arq_graph.cli.leaving import Left
from arq_graph.cli.milestone_check import show_findings, summary
from arq_graph.cli.milestone_editing import ask_milestone, ask_names, ask_new
from arq_graph.cli.milestone_file import MilestoneFile, NotSaved
from arq_graph.cli.milestone_picture import show_picture
from arq_graph.cli.prompting import ask
from arq_graph.cli.screen import command, labelled, output, printable, sentence, words
from arq_graph.errors import InputError
from arq_graph.milestones.authoring.reviewing import GraphReview
from arq_graph.milestones.constraints import Constraint
from arq_graph.milestones.milestone import START, Function, Milestone

_CHOICES = {"a": "accept", "e": "edit", "d": "drop", "n": "new", "p": "picture", "q": "quit"}
_LONGEST = 2_000
_LONGEST_NAME = 100


class _Leave(Exception):
    """The reviewer goes on another time."""


def review_milestones(file: Path, by: str | None, tools: Any) -> None:
    """Walk through a milestone file with whoever sits at the terminal.

    Args:
        file: The milestone file; every decision is written to it at once.
        by: Who reviews; None takes the login's name.
        tools: The agent's tools, to hold the FCs against; None: not compared.

    Raises:
        SpecError: The file cannot be read.
        InputError: Nobody is named.
        NotSaved: It cannot be written, or was changed by somebody else meanwhile.
        Left: On Ctrl-C; what was decided is kept.
    """
    walk = _Walk(MilestoneFile(file), _reviewer(by), tools)
    try:
        walk.run()
    except (_Leave, EOFError):
        walk.say_how_to_go_on()
    except KeyboardInterrupt:
        walk.say_how_to_go_on()
        raise Left from None


def _reviewer(by: str | None) -> str:
    if by is None:
        try:
            by = getpass.getuser()
        except (OSError, KeyError, ImportError):
            by = ""
    if not by.strip():
        raise InputError("nobody is named: say with --by who reviews")
    return printable(by, _LONGEST_NAME)


class _Walk:
    """One sitting: what is left to look at, and what is done about it."""

    def __init__(self, file: MilestoneFile, by: str, tools: Any) -> None:
        self._file = file
        self._by = by
        self._console: Console = output()
        self._review = GraphReview(file.graph, by=by, date=date.today().isoformat(), tools=tools)
        self._again: tuple[str, ...] = ()

    def run(self) -> None:
        """Walk through what is left, and mark the graph as reviewed when it is sound."""
        self._console.print(summary(self._review.graph))
        self._console.print()
        self._show_picture()
        self._show_findings()
        self._begin()
        while True:
            self._walk()
            if self._review.findings.errors:
                self._repair()
            elif not self._wants("Is a milestone missing?"):
                break
            else:
                self._add(None)
        self._review.finish()
        self._save()
        self._console.print()
        self._console.print(words(f"{self._file.path} is reviewed: {self._review.graph.review}.", "green"))

    def say_how_to_go_on(self) -> None:
        """Say what is kept, and how to go on."""
        left, all_ = len(self._todo), len(self._review.graph)
        self._console.print()
        note(f"{all_ - left} of {all_} milestones are decided, and kept in {self._file.path}. Go on with:")
        self._console.print(
            command("arq-graph", "milestones", "review", self._file.path, "--by", self._by), soft_wrap=True
        )

    @property
    def _todo(self) -> tuple[str, ...]:
        again = tuple(name for name in self._again if name in self._review.graph)
        return tuple(dict.fromkeys((*self._review.open, *again)))

    def _begin(self) -> None:
        if not self._review.open:
            reviewed = self._review.graph.review
            if reviewed is not None and reviewed.reviewed:
                self._console.print(words("All of it is reviewed."))
                if not self._wants("Go through it again?"):
                    raise _Leave
                self._again = self._review.open_to_reviewer or tuple(self._review.graph)
        elif len(self._review.open) < len(self._review.graph):
            self._console.print(words(f"Going on with {self._review.open[0]!r}."))

    def _walk(self) -> None:
        while self._todo:
            name = self._todo[0]
            self._show(name)
            self._decide(name)

    def _decide(self, name: str) -> None:
        """Ask until something is decided about a milestone."""
        acts: dict[str, Callable[[str], bool]] = {
            "accept": self._accept,
            "edit": self._edit,
            "drop": self._drop,
            "new": self._add,
        }
        while True:
            choice = _choice()
            if choice == "quit":
                raise _Leave
            if choice == "picture":
                self._show_picture()
                continue
            try:
                if acts[choice](name):
                    return
            except NotSaved:
                raise
            except InputError as error:
                self._console.print(words(str(error), "yellow"))

    def _accept(self, name: str) -> bool:
        self._review.accept(name)
        self._done(name)
        return True

    def _edit(self, name: str) -> bool:
        edited = ask_milestone(self._review.graph, self._review.graph.milestone(name))
        self._review.edit(name, edited)
        self._done(name)
        self._show_findings()
        return True

    def _drop(self, name: str) -> bool:
        graph = self._review.graph
        dependents = [each.name for each in graph.milestones if name in each.dependencies]
        if dependents:
            inherited = graph.milestone(name).dependencies or (START,)
            self._console.print(
                words(
                    f"{_names(dependents)} will depend on {_names(inherited)} instead, for you to look at again."
                )
            )
            if not self._wants("Drop it?"):
                return False
        self._review.drop(name)
        self._done(name)
        self._show_findings()
        return True

    def _add(self, after: str | None) -> bool:
        graph = self._review.graph
        new = ask_new(graph)
        dependents = ask_names(graph, "Which milestones depend on it, too?", ())
        self._review.add(new, after=after, dependents=dependents)
        self._save()
        self._show_findings()
        return True

    def _repair(self) -> None:
        """Errors are left: a graph with errors is not reviewed."""
        self._show_findings()
        self._console.print(words("It cannot be marked as reviewed while there are errors.", "yellow"))
        choice = ask("Name a milestone to look at again, [n]ew, or [q]uit: ").strip()
        if choice in self._review.graph:
            self._again = (choice,)
        elif choice.lower() in ("n", "new"):
            self._add(None)
        elif choice.lower() in ("q", "quit"):
            raise _Leave
        else:
            self._console.print(words(f"There is no milestone {choice!r}.", "yellow"))

    def _done(self, name: str) -> None:
        self._again = tuple(each for each in self._again if each != name)
        self._save()

    def _save(self) -> None:
        had_copy = self._file.copy
        self._review.graph = self._file.save(self._review.graph)
        if self._file.copy is not None and had_copy is None:
            note(
                f"Comments and layout of {self._file.path} are not kept; as it was it stands in {self._file.copy}."
            )

    def _wants(self, question: str) -> bool:
        return ask(f"{question} [y/N] ").strip().lower() in ("y", "yes")

    def _show_picture(self) -> None:
        show_picture(self._review.graph, self._console, reviewed=set(self._review.graph) - set(self._todo))

    def _show_findings(self) -> None:
        found = self._review.findings
        show_findings("Errors", "bold red", found.errors, self._console)
        # That it is not reviewed is what the reviewer is about.
        about_graph = [each for each in found.warnings if each.milestone is not None]
        show_findings("Warnings", "yellow", about_graph, self._console)

    def _show(self, name: str) -> None:
        graph = self._review.graph
        milestone = graph.milestone(name)
        place = f"{list(graph).index(name) + 1} of {len(graph)}"
        self._console.print()
        self._console.print(sentence(words(name, "bold"), "  ", words(f"{milestone.type}, {place}", "dim")))
        if milestone.description:
            self._console.print(words(printable(milestone.description, _LONGEST)))
        before, after = milestone.dependencies, tuple(graph.successors(name))
        several = f"{graph.nodes[name]['requires']} of " if len(before) > 1 else ""
        rows = [("needs", "dim", [words(several + _names(before))])] if before else []
        rows += [("leads to", "dim", [words(_names(after))])] if after else []
        rows += [(label, "dim", [words(said)]) for label, said in _rules(milestone)]
        self._console.print(labelled(rows))


def _choice() -> str:
    while True:
        said = ask("[a]ccept, [e]dit, [d]rop, [n]ew milestone, [p]icture, or [q]uit? ").strip().lower()
        for key, choice in _CHOICES.items():
            if said in (key, choice):
                return choice
        output().print(words("Answer with a, e, d, n, p or q.", "yellow"))


def _names(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(names)


def _rules(milestone: Milestone) -> list[tuple[str, str]]:
    rules = []
    if milestone.tool:
        rules.append(("tool", milestone.tool))
    if milestone.arguments:
        rules.append(("with", _constraints(milestone.arguments)))
    if milestone.check is not None:
        check = milestone.check
        seen = (
            check.name
            if isinstance(check, Function)
            else f"{check.said_by or 'anyone'} says /{check.pattern.text}/"
        )
        rules.append(("check", seen))
    elif milestone.is_decided_by_judge:
        rules.append(("check", "none: a judge decides"))
    if milestone.weight != 1:
        rules.append(("weight", str(milestone.weight)))
    return rules


def _constraints(arguments: Any) -> str:
    each: list[tuple[str, Constraint]] = list(arguments.items())
    return ", ".join(f"{name}: {rule.as_written()}" for name, rule in each)
