"""Turn-level evaluation: is each next action the right one, given the true history up to it?"""
