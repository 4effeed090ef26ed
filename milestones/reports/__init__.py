"""Measurements of many conversations: their figures as data, as tables and as a page."""
