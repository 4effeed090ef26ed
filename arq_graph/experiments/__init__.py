"""Experiments: suites, arms and a report, set beside what the papers report."""
