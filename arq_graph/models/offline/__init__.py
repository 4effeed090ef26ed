"""A stand-in for a chat model, which shows how a graph runs where no key is; it understands nothing."""
