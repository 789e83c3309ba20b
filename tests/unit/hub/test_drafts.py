"""Which model a chain guesses ahead with."""

from __future__ import annotations

import pytest

from fleetapp.errors import Unsupported
from fleetapp.hub.drafts import Drafting, choose
from fleetapp.models.manifest import Architecture, ModelManifest
from tests.support.fake_hub import FakeHub


def model(name: str, size: int, vocabulary: str = "v", tokens: int = 100) -> ModelManifest:
    architecture = Architecture(
        family="llama",
        layers=2,
        hidden_size=8,
        vocab_size=tokens,
        kv_heads=(1, 1),
        head_sizes=(8, 8),
        context_length=64,
        eos_ids=(0,),
        bos_id=None,
        chat_template=None,
        vocab_digest=vocabulary,
    )
    return ModelManifest(
        schema=1,
        model_id=name,
        revision="",
        source="",
        licence="",
        architecture=architecture,
        quantization="",
        converter="",
        layer_bytes=(size, size),
        embedding_bytes=0,
        head_bytes=0,
        files=(),
    )


LARGE = model("large", 1000)
SMALL = model("small", 100)
SMALLER = model("smaller", 50)
HALF = model("nearly as large", 600)
FOREIGN = model("foreign", 10, "w")
OTHER_SIZE = model("padded", 10, tokens=101)
NAMELESS = model("nameless", 10, "")
LIBRARY = (LARGE, SMALL, SMALLER, HALF, FOREIGN, OTHER_SIZE, NAMELESS)


def test_auto_takes_the_smallest_that_speaks_alike_and_is_worth_it() -> None:
    assert choose("auto", LARGE, LIBRARY) == Drafting(lookup=True, model="smaller")
    assert choose("auto", LARGE, (LARGE, HALF, FOREIGN, NAMELESS)) == Drafting(lookup=True)
    assert choose("auto", SMALLER, LIBRARY) == Drafting(lookup=True)
    assert choose("auto", NAMELESS, LIBRARY) == Drafting(lookup=True)


def test_the_admin_can_say_what_to_guess_with() -> None:
    assert choose("off", LARGE, LIBRARY) == Drafting(lookup=False)
    assert choose("lookup", LARGE, LIBRARY) == Drafting(lookup=True)
    assert choose("small", LARGE, LIBRARY) == Drafting(lookup=True, model="small")
    assert choose("large", LARGE, LIBRARY) == Drafting(lookup=True, model="large")


@pytest.mark.parametrize("name", ["foreign", "padded", "nameless", "not there"])
def test_a_model_that_cannot_draft_is_refused_with_a_remedy(name: str) -> None:
    with pytest.raises(Unsupported) as error:
        choose(name, LARGE, LIBRARY)
    assert "lookup" in error.value.remedy


async def test_only_the_head_hears_of_drafts() -> None:
    hub = FakeHub("hub", "anna", "bert", stages=3)
    hub.guesses = (Drafting(lookup=True, model="small"), 100)
    hub.server.start()
    await hub.until("live")
    head, *others = [assign for _, assign in hub.assigned]
    assert head.lookup
    assert head.draft is not None
    assert not any(a.lookup or a.draft for a in others)
    assert "small" in hub.chain.view().plan
    await hub.server.stop("done")
