"""The eight kinds of prompt that every comparison uses (after Pipeline Shards, section 5.3)."""

from __future__ import annotations

from typing import Final

PROMPTS: Final[dict[str, str]] = {
    "short fact": "What is the capital of France?",
    "reasoning": "A train leaves Chicago at 60 mph and another leaves New York, 790 miles away, "
    "at 70 mph towards it. When and where do they meet?",
    "code": "def fibonacci(n):\n    ",
    "list": "List five inventions of the 20th century:\n1.",
    "creative": "Once upon a time, in a kingdom far beyond the mountains, there lived",
    "technical": "Explain how HTTP/2 multiplexing works.",
    "chat": "User: I do not understand recursion. Can you explain it?\nAssistant:",
    "translation": "Translate into French: Good morning, how are you today?",
}
