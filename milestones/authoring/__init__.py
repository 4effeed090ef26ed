"""Milestone graphs written from a workflow, and walked through by a person before they count."""
