"""Under exact precision the tokens do not depend on the split, the batch or the company."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.served import PROMPTS, Served

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

SAMPLED = {"temperature": 0.8, "seed": 7, "extra": {"top_k": 40}, "top_p": 0.95}


def everything(fleet: Served, tokens: int) -> dict[str, list[int]]:
    """All prompts alone, all at once, and one with sampling."""
    found = {f"{kind} alone": fleet.ask(p, tokens) for kind, p in PROMPTS.items()}
    with ThreadPoolExecutor(8) as pool:
        futures = {k: pool.submit(fleet.ask, p, tokens) for k, p in PROMPTS.items()}
        found |= {f"{kind} among eight": f.result() for kind, f in futures.items()}
        futures = {k: pool.submit(fleet.ask, p, tokens, **SAMPLED) for k, p in PROMPTS.items()}
        found |= {f"{kind} sampled among eight": f.result() for kind, f in futures.items()}
    found["creative sampled"] = fleet.ask(PROMPTS["creative"], tokens, **SAMPLED)
    return found


def compare(library: Path, counts: tuple[int, ...], tokens: int) -> None:
    results = {}
    for nodes in counts:
        with Served(nodes, "exact", library) as fleet:
            results[nodes] = everything(fleet, tokens)
    reference = results[counts[0]]
    for kind in PROMPTS:
        assert reference[f"{kind} alone"] == reference[f"{kind} among eight"], kind
    assert reference["creative sampled"] == reference["creative sampled among eight"]
    assert reference["creative sampled"] != reference["creative alone"], "sampling has teeth"
    for nodes in counts[1:]:
        for case, ids in results[nodes].items():
            assert len(ids) == tokens
            assert ids == reference[case], f"{nodes} PCs differ from {counts[0]} in {case}"


def test_one_and_three_pcs_give_the_same_tokens(library: Path) -> None:
    compare(library, (1, 3), 24)


@pytest.mark.slow
def test_any_split_gives_the_same_128_tokens(library: Path) -> None:
    compare(library, (1, 2, 3, 5), 128)
