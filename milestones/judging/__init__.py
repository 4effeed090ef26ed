"""LLM judges: they decide milestones that code can't check, and veto calls."""
