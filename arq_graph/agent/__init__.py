"""The specification that a designer writes (guidelines, tools, glossary), and the state of a thread."""
