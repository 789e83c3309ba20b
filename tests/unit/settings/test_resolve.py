from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetapp.errors import BadSetting
from fleetapp.settings.resolve import Layer, environment_layer, resolve
from fleetapp.settings.schema import SCHEMA, Settings

SOURCES = ("user", "environment", "user policy", "machine policy")
VALUES: dict[str, st.SearchStrategy[object]] = {
    "contribute": st.booleans(),
    "node_name": st.text("abc é測", max_size=8).map(str.strip),
    "api_port": st.integers(0, 65535),
    "threads": st.integers(0, 64),
    "precision": st.sampled_from(["fast", "exact"]),
}
some_values = st.fixed_dictionaries({}, optional=VALUES)


@given(st.tuples(*[some_values] * len(SOURCES)))
def test_the_highest_layer_with_a_value_wins_and_is_named(layers: tuple[dict, ...]) -> None:
    stack = [Layer(source, f"place {source}", v) for source, v in zip(SOURCES, layers, strict=True)]
    settings = resolve(stack)
    for row in settings.explain():
        winners = [layer for layer in stack if row.name in layer.values]
        if winners:
            assert row.value == winners[-1].values[row.name]
            assert (row.source, row.where) == (winners[-1].source, winners[-1].where)
        else:
            assert row.value == row.default
            assert row.source == "default"
        assert row.locked == (row.source in ("user policy", "machine policy"))


@given(some_values, some_values)
def test_a_layer_without_values_changes_nothing(low: dict, high: dict) -> None:
    stack = [Layer("user", "u", low), Layer("machine policy", "m", high)]
    padded = [stack[0], Layer("environment", "e", {}), stack[1]]
    assert resolve(stack) == resolve(padded)


@pytest.mark.parametrize("word", ["0", "false", "no", "off", "", "FALSE", " No "])
def test_words_that_mean_off_switch_off(word: str) -> None:
    """Trap T28."""
    on_before = Layer("user", "u", {"contribute": True})
    settings = resolve([on_before, environment_layer({"FLEETAPP_CONTRIBUTE": word})])
    assert settings.contribute is False
    assert settings.origin("contribute").source == "environment"


@pytest.mark.parametrize("word", ["1", "true", "yes", "on", "True"])
def test_words_that_mean_on_switch_on(word: str) -> None:
    assert resolve([environment_layer({"FLEETAPP_CONTRIBUTE": word})]).contribute is True


def test_an_empty_number_in_the_environment_counts_as_not_set() -> None:
    assert environment_layer({"FLEETAPP_THREADS": "", "FLEETAPP_PRECISION": ""}).values == {}
    assert environment_layer({"FLEETAPP_NODE_NAME": ""}).values == {"node_name": ""}


def test_variables_that_are_no_settings_are_left_alone() -> None:
    assert environment_layer({"FLEETAPP_HOME": "/x", "PATH": "/bin"}).values == {}


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("contribute", "maybe"),
        ("contribute", 2),
        ("contribute", None),
        ("contribute", []),
        ("api_port", 65536),
        ("api_port", -1),
        ("api_port", "8484.0"),
        ("api_port", True),
        ("api_port", "²"),
        ("threads", 1.5),
        ("precision", "slow"),
        ("node_name", "a\nb"),
        ("node_name", 5),
        ("hub_address", "hub"),
        ("hub_address", "hub:0"),
        ("hub_address", ":8485"),
        ("mdns_interfaces", "eth0"),
        ("models_dir", "relative/folder"),
    ],
)
def test_a_value_that_makes_no_sense_names_setting_value_and_place(name: str, raw: object) -> None:
    with pytest.raises(BadSetting) as caught:
        resolve([Layer("user", "/home/x/settings.json", {name: raw})])
    assert name in caught.value.message
    assert "/home/x/settings.json" in caught.value.message
    assert repr(raw) in caught.value.message


def test_values_arrive_typed() -> None:
    settings = resolve(
        [
            Layer(
                "user",
                "u",
                {
                    "api_port": "0",
                    "models_dir": str(Path.cwd() / "José 測試"),
                    "hub_address": "[fd00::1]:8485",
                    "mdns_interfaces": " 127.0.0.1, ::1 ",
                },
            )
        ]
    )
    assert settings.api_port == 0
    assert settings.models_dir == Path.cwd() / "José 測試"
    assert settings.interfaces() == ("127.0.0.1", "::1")
    assert Settings().interfaces() is None


def test_a_name_of_a_newer_version_is_ignored() -> None:
    assert resolve([Layer("machine policy", "m", {"from_the_future": 1})]) == Settings()


def test_every_setting_is_declared_with_a_sentence_and_a_valid_default() -> None:
    for setting in SCHEMA.values():
        assert setting.help.endswith(".")
        if setting.default is not None:
            assert setting.check(setting.default, "the code") == setting.default
