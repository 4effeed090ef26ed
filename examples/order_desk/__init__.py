"""The order desk: an agent as a YAML file with its tools and a conversation to try it on."""
