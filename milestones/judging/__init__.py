"""Judges: who decides what code cannot see, and who may take away what it saw."""
