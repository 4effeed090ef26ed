"""Agents evaluated in conversations with simulated users: scenarios, runs that can be stopped, and their report."""
