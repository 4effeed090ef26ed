"""What was measured over many conversations: the figures, as data, as a table and as a page to look at."""
