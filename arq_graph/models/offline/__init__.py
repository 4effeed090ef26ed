"""A fake chat model that shows how a graph runs without a key; it understands nothing."""
