"""Attentive reasoning queries: blueprints, and the reasoner that asks a model to answer them."""
