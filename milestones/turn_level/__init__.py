"""Turn-level evaluation: an agent's next action after the true history, compared with the recorded one."""
