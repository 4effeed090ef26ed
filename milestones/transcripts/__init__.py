"""Reading transcripts: a format is a module that turns a record into chat messages, and its name in a list."""
