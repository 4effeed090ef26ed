"""Simulated users: whoever an agent talks to while it is evaluated."""
