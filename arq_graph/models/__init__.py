"""The chat models of the library: one that answers from a script, and one that works offline."""
