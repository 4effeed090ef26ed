"""Milestone graphs that a model drafts from a workflow."""
