"""Transcripts from records: a format is a file that makes LangChain messages of a record, and a line in a table."""
