"""Speaking: think, speak or act, one move at a time (ReSpAct)."""
