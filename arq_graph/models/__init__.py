"""The chat models that come with the library: one that answers from a script, one that works offline."""
