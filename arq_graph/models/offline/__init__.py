"""A stand-in for a chat model, which shows how a graph runs where no key is.

It is no language model: it knows no facts and understands no sentence. It reads the sections of the prompt, compares
words by their stems, finds values by their shape, and fills in whatever schema it is asked for. It is deterministic,
keeps nothing between calls, and says so where it does not understand.
"""
