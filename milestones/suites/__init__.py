"""Suites that ship: data, with the worlds that it is about."""
