"""Where the text of a licence is, and which ones somebody has to agree to. Pure values."""

from __future__ import annotations

import re

from fleetapp.types import Licence

_TEXTS = {
    "apache-2.0": "https://www.apache.org/licenses/LICENSE-2.0",
    "mit": "https://opensource.org/license/mit",
    "bsd-3-clause": "https://opensource.org/license/bsd-3-clause",
    "cc0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "cc-by-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "cc-by-sa-4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
    "cc-by-nc-4.0": "https://creativecommons.org/licenses/by-nc/4.0/",
}
_TERMS = {
    "gemma": "https://ai.google.dev/gemma/terms",
    "llama2": "https://www.llama.com/llama2/license/",
    "llama3": "https://www.llama.com/llama3/license/",
    "llama3.1": "https://www.llama.com/llama3_1/license/",
    "llama3.2": "https://www.llama.com/llama3_2/license/",
    "llama3.3": "https://www.llama.com/llama3_3/license/",
}
"""Contracts with rules of use, by the names that model hubs give them."""


def licence(text: str) -> Licence:
    """What is known of a licence named as authors of models do.

    Names are compared without regard to case; one that is an address itself is its own text.
    """
    name = text.strip()
    if name.lower() in ("", "unknown", "other"):
        return Licence("")
    key = name.lower()
    if key in _TERMS:
        return Licence(name, _TERMS[key], accept=True)
    if re.fullmatch(r"https?://[^\s<>\"]+", name):
        return Licence(name, name)
    return Licence(name, _TEXTS.get(key, ""))
