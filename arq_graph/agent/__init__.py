"""What a designer writes: guidelines, tools, glossary; their relations; and the state of a thread."""
