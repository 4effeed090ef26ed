"""Compiled agents, and what drives them."""
