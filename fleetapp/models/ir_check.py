"""What an OpenVINO IR folder holds, checked before anything native reads it. No OpenVINO."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.parsers import expat

import msgspec

from fleetapp.errors import CorruptModel, NotAModel, Unsupported
from fleetapp.models.chunking import tensor_spans
from fleetapp.models.facts import Description, GraphFacts

XML, BIN = "openvino_model.xml", "openvino_model.bin"
GRAPHS = ("openvino_tokenizer", "openvino_detokenizer")
TOKENIZER_FILES = (
    *(f"{stem}{suffix}" for stem in GRAPHS for suffix in (".xml", ".bin")),
    "tokenizer_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "chat_template.jinja",
    "chat_template.json",
    "config.json",
    "generation_config.json",
)
"""What goes with a first stage: the graphs, and what openvino-genai reads beside them."""
_LARGEST_JSON = 64 * 1024 * 1024


def check(folder: Path) -> None:
    """Check that a folder is a complete stateful language model with its tokenizer.

    Raises:
        NotAModel: no IR there, or one without states or token input.
        CorruptModel: XML that does not parse, or weights that end early.
        Unsupported: the tokenizer is missing.
    """
    if not (folder / XML).is_file():
        raise _not_ir(folder)
    if not (folder / BIN).is_file():
        raise CorruptModel(f"{folder.name} has {XML} but not {BIN}.")
    check_graph(folder, "openvino_model")
    kinds = layer_kinds(folder / XML)
    if not {"ReadValue", "Assign"} <= kinds:
        raise NotAModel(
            f"{folder.name} has no key-value state, so it is not a stateful language model.",
            remedy="Export it with optimum-intel as text-generation-with-past, stateful.",
        )
    for stem in GRAPHS:
        if not (folder / f"{stem}.xml").is_file():
            raise Unsupported(
                f"{folder.name} has no {stem}.xml.",
                remedy="Make it with 'convert_tokenizer <model> --with-detokenizer' "
                "(openvino-tokenizers) and put it into the folder.",
            )
        check_graph(folder, stem)


def _not_ir(folder: Path) -> Exception:
    if any(folder.glob("*.safetensors")):
        return NotAModel(
            f"{folder.name} is a checkpoint that nobody has converted yet.",
            remedy="Convert it with 'optimum-cli export openvino' and import the result.",
        )
    return NotAModel(f"{folder.name} has no {XML}.")


def check_graph(folder: Path, stem: str) -> None:
    """Check that a graph is well-formed and that every constant lies within its weights file.

    Raises:
        CorruptModel: it is not so.
    """
    xml, weights = folder / f"{stem}.xml", folder / f"{stem}.bin"
    spans = tensor_spans(xml)
    size = weights.stat().st_size if weights.is_file() else 0
    needed = max((offset + length for offset, length in spans), default=0)
    if needed > size:
        raise CorruptModel(
            f"{weights.name} is truncated: it has {size} of at least {needed} bytes."
        )


def layer_kinds(xml: Path) -> set[str]:
    """Operation types of a graph, read as a stream."""
    kinds: set[str] = set()

    def element(name: str, attributes: dict[str, str]) -> None:
        if name == "layer" and "type" in attributes:
            kinds.add(attributes["type"])

    _stream(xml, element)
    return kinds


def _rt_info(xml: Path) -> dict[str, str]:
    """Model-level information of a graph (``<rt_info><key value=…/>`` below ``<net>``)."""
    found: dict[str, str] = {}
    depth = 0
    stack: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        stack.append(name)
        if stack[:2] == ["net", "rt_info"] and "value" in attributes:
            found[attributes.get("name", name)] = attributes["value"]

    def end(_: str) -> None:
        stack.pop()

    _stream(xml, start, end)
    return found


def _stream(xml: Path, start: Any, end: Any = None) -> None:
    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    if end is not None:
        parser.EndElementHandler = end
    try:
        with xml.open("rb") as file:
            parser.ParseFile(file)
    except expat.ExpatError as e:
        raise CorruptModel(f"{xml.name} is not a well-formed graph file: {e}.") from e


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    if path.stat().st_size > _LARGEST_JSON:
        raise CorruptModel(f"{path.name} is too large to be a configuration file.")
    try:
        value = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as e:
        raise CorruptModel(f"{path.name} is not valid JSON: {e}.") from e
    return value if isinstance(value, dict) else {}


def _ids(value: object) -> list[int]:
    items = value if isinstance(value, list) else [value]
    return [i for i in items if isinstance(i, int) and not isinstance(i, bool) and i >= 0]


def describe(folder: Path) -> Description:
    """Gather what the configuration files of an IR folder say; all of them are optional."""
    config, generation = _json(folder / "config.json"), _json(folder / "generation_config.json")
    tokens = _json(folder / "tokenizer_config.json")
    text = config.get("text_config")
    inner = config | text if isinstance(text, dict) else config
    ids = _ids(inner.get("eos_token_id")) + _ids(generation.get("eos_token_id"))
    ids += _token_id(tokens, "eos_token")
    bos = next(iter(_ids(inner.get("bos_token_id"))), None)
    context = next(iter(_ids(inner.get("max_position_embeddings"))), 0)
    family = inner.get("model_type")
    return Description(
        family=family if isinstance(family, str) else "unknown",
        context_length=context,
        eos_ids=tuple(sorted(set(ids))),
        bos_id=bos,
        chat_template=_template(folder, tokens),
        windows=_windows(inner),
    )


def _windows(config: dict[str, Any]) -> tuple[int | None, ...]:
    window, kinds = config.get("sliding_window"), config.get("layer_types")
    if not isinstance(window, int) or not isinstance(kinds, list):
        return ()
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)


def _token_id(tokens: dict[str, Any], key: str) -> list[int]:
    """Id of a special token that the tokenizer's configuration names by its text."""
    value = tokens.get(key)
    text = value.get("content") if isinstance(value, dict) else value
    table = tokens.get("added_tokens_decoder")
    if not isinstance(text, str) or not isinstance(table, dict):
        return []
    return [
        int(index)
        for index, token in table.items()
        if isinstance(token, dict) and token.get("content") == text and index.isdecimal()
    ]


def _template(folder: Path, tokens: dict[str, Any]) -> str | None:
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text("utf-8")
    for value in (
        _json(folder / "chat_template.json").get("chat_template"),
        tokens.get("chat_template"),
    ):
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            named = {t.get("name"): t.get("template") for t in value if isinstance(t, dict)}
            chosen = named.get("default")
            if isinstance(chosen, str):
                return chosen
    return None


def complete(described: Description, folder: Path) -> Description:
    """Add what the tokenizer graph of an imported model says: ids and chat template."""
    info = _rt_info(folder / "tokenizer" / "openvino_tokenizer.xml")
    eos = _ids_of(info.get("eos_token_id", ""))
    bos = next(iter(_ids_of(info.get("bos_token_id", ""))), None)
    return msgspec.structs.replace(
        described,
        eos_ids=tuple(sorted({*described.eos_ids, *eos})),
        bos_id=described.bos_id if described.bos_id is not None else bos,
        chat_template=described.chat_template or info.get("chat_template") or None,
    )


def _ids_of(text: str) -> list[int]:
    return [int(text)] if text.strip().isdecimal() else []


def runtime(xml: Path) -> str:
    """Who wrote a graph, for the manifest."""
    info = _rt_info(xml)
    return f"OpenVINO {info.get('OpenVINO Runtime') or info.get('Runtime_version') or 'unknown'}"


def weight_type(facts: GraphFacts) -> str:
    """The element type most weights have."""
    return facts.weight_types[0][0] if facts.weight_types else "unknown"
