"""The real tokenizer of the sample model: templates, limits, streaming."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fleetapp.engine.detokenize import StreamDecoder, TableDecoder
from fleetapp.engine.pipe import ChatMessage
from fleetapp.engine.text import TokenizerHost
from fleetapp.errors import BadRequest, ContextTooLong, NotAModel, TemplateRefused
from fleetapp.models.library import Library
from tests.support.sample_model import MODEL, NobodySigns, sample_library

pytestmark = pytest.mark.model

HELLO = ChatMessage("user", "Hello")
STRICT = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant') }}{% endif %}"
    "{{ m['content'] }}{{ eos_token }}{% endfor %}"
)


@pytest.fixture(scope="module")
def folder() -> Path:
    return Library(sample_library(), NobodySigns()).folder(MODEL) / "tokenizer"


@pytest.fixture(scope="module")
def template() -> str:
    manifest, _ = Library(sample_library(), NobodySigns()).get(MODEL)
    assert manifest.architecture.chat_template
    return manifest.architecture.chat_template


@pytest.fixture(scope="module")
def host(folder: Path, template: str) -> TokenizerHost:
    return TokenizerHost(folder, template, context=8192)


@pytest.fixture(scope="module")
def strict(folder: Path) -> TokenizerHost:
    return TokenizerHost(folder, STRICT, context=8192)


def test_a_conversation_is_rendered_by_the_models_own_template(host: TokenizerHost) -> None:
    text = host.render_chat([HELLO])
    assert text.endswith("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n")
    ids = host.encode_chat([HELLO])
    assert ids[0] == 1
    assert ids.count(1) == text.count("<|im_start|>")


def test_a_template_that_writes_the_bos_leaves_it_the_only_one(strict: TokenizerHost) -> None:
    ids = strict.encode_chat([HELLO])
    assert ids[0] == 1
    assert ids.count(1) == 1


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([ChatMessage("system", "Be brief."), HELLO], "System role not supported"),
        ([HELLO, HELLO], "must alternate"),
    ],
)
def test_a_template_that_raises_is_a_refusal_in_its_own_words(
    strict: TokenizerHost, messages: list[ChatMessage], reason: str
) -> None:
    with pytest.raises(TemplateRefused, match=reason) as caught:
        strict.encode_chat(messages)
    assert "row" not in caught.value.message
    assert "jenkins" not in caught.value.message
    assert strict.encode_chat([HELLO])


@pytest.mark.parametrize("broken", ["{% if %}", "{{ messages[0].a.b.c }}"])
def test_a_broken_template_refuses_chats_but_not_prompts(folder: Path, broken: str) -> None:
    host = TokenizerHost(folder, broken, context=8192)
    with pytest.raises(TemplateRefused):
        host.encode_chat([HELLO])
    assert host.encode_prompt("Hello")


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_prompts_without_text_are_refused(host: TokenizerHost, text: str) -> None:
    with pytest.raises(BadRequest):
        host.encode_prompt(text)
    with pytest.raises(BadRequest):
        host.encode_chat([HELLO, ChatMessage("user", text)])


@pytest.mark.parametrize(
    "messages", [[], [ChatMessage("system", "")], [ChatMessage("assistant", " ")]]
)
def test_conversations_without_text_are_refused(
    host: TokenizerHost, messages: list[ChatMessage]
) -> None:
    with pytest.raises(BadRequest):
        host.encode_chat(messages)


def test_an_empty_answer_in_the_history_is_no_reason_to_refuse(host: TokenizerHost) -> None:
    assert host.encode_chat([HELLO, ChatMessage("assistant", ""), HELLO])


@pytest.mark.parametrize("text", ["\ud800abc", "abc\udfff"])
def test_half_a_surrogate_is_refused(host: TokenizerHost, text: str) -> None:
    for refused in (
        lambda: host.encode_prompt(text),
        lambda: host.encode_chat([ChatMessage("user", text)]),
        lambda: host.count(text),
    ):
        with pytest.raises(BadRequest, match="Unicode"):
            refused()


@pytest.mark.parametrize("words", [8191, 8192, 9000, 30000])
def test_no_prompt_is_cut_off_silently(host: TokenizerHost, words: int) -> None:
    """openvino-genai's own conversion cuts at 8,192 tokens; import lifts that, and whatever limit
    a tokenizer has, reaching it is an error.
    """
    text = "a" + " a" * (words - 1)
    try:
        ids = host.encode_prompt(text)
    except ContextTooLong:
        assert words > 8191, "the window of the model fits"
    else:
        assert len(ids) == words


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotAModel, match=tmp_path.name):
        TokenizerHost(tmp_path, None, context=100)


def test_the_emoji_of_a_family_is_never_shown_in_halves(host: TokenizerHost) -> None:
    text = "👩‍👩‍👧 日本"
    decoder = host.stream()
    shown = [decoder.push(i) for i in host._encode(text)]
    shown.append(decoder.flush())
    assert "".join(shown) == text
    assert "\ufffd" not in "".join(shown)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.characters(codec="utf-8"),
            st.sampled_from(["👩‍👩‍👧", "word ", "\ufffd", "日本", " ,"]),
        ),
        max_size=60,
    ).map("".join)
)
@example("word " * 100)
@example("\ufffd" * 100)
def test_what_was_streamed_equals_the_full_decode(host: TokenizerHost, text: str) -> None:
    ids = host._encode(text)
    for decoder in (host.stream(), StreamDecoder(host.decode)):
        assert "".join([decoder.push(i) for i in ids]) + decoder.flush() == host.decode(ids)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 49151), max_size=80))
def test_so_it_does_for_tokens_that_make_no_sense(host: TokenizerHost, ids: list[int]) -> None:
    for decoder in (host.stream(), StreamDecoder(host.decode)):
        assert "".join([decoder.push(i) for i in ids]) + decoder.flush() == host.decode(ids)


def test_a_token_of_the_sample_model_costs_a_look_up(host: TokenizerHost) -> None:
    assert isinstance(host.stream(), TableDecoder)
