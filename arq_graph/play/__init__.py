"""The playground of `arq-graph play`: a page on this machine to talk to an agent and see why it does what it does."""
