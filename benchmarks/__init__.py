"""What a turn costs: calls, characters, tokens, time. `python -m benchmarks` prints it."""
