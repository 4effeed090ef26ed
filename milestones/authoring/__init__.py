"""Milestone graphs that a model drafts from a workflow, and how a graph is drawn."""
