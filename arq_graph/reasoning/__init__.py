"""What an attentive reasoning query is, and how it is asked of a model."""
