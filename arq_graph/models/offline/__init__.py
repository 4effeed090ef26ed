"""A chat model that answers blueprints offline, by word overlap, types and rules.

It is no language model: it knows no facts and understands no sentence. It reads the sections of the prompt,
compares words by their stems and by a short list of everyday synonyms, finds values by their shape, and fills in
whatever schema it is asked for. It is deterministic, keeps nothing between calls, and holds no example's words.
"""
