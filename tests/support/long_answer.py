"""A long answer with everything that Markdown has in it, as the speed of the chat is tried with."""

from __future__ import annotations

PROSE = (
    "Some **bold** text with `code` and a [link](https://example.org), and more words that fill "
    "the line and go on. " * 4 + "\n\n"
)
CODE = (
    "```python\n"
    + "".join(f"def function_{i}(a, b):\n    return a + b * {i}  # why\n\n" for i in range(40))
    + "```\n\n"
)
TABLE = (
    "| a | b | c |\n|---|---|---|\n"
    + "".join(f"| {i} | **x** | some words |\n" for i in range(40))
    + "\n"
)
LIST = "".join(f"{i}. item **number** {i} with `code`\n" for i in range(40)) + "\n"
ANSWER = (PROSE * 3 + CODE + TABLE + LIST) * 3
TOKEN = 4
"""Characters."""
