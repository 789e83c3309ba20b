from fleetapp.settings.german import GERMAN
from fleetapp.settings.schema import SCHEMA, SECTIONS
from fleetapp.settings.words import english, in_language


def test_german_has_every_text_and_no_other() -> None:
    assert {text for text in english() if text} == set(GERMAN)


def test_another_language_gets_english_and_regions_do_not_matter() -> None:
    assert in_language("Schedule", "de_AT") == in_language("Schedule", "de") == "Zeitplan"
    assert in_language("Schedule", "pt-BR") == in_language("Schedule", "") == "Schedule"


def test_help_is_a_sentence_and_labels_are_not() -> None:
    for setting in SCHEMA.values():
        for words in (setting.words.help, GERMAN[setting.words.help]):
            assert words.endswith(".")
        assert not setting.words.label.endswith(".")
        assert len(setting.words.label) <= 40
        assert not setting.words.nothing.endswith(".")


def test_settings_of_a_section_are_declared_together_in_the_sections_order() -> None:
    sections = [setting.section for setting in SCHEMA.values()]
    assert list(dict.fromkeys(sections)) == list(SECTIONS)
    assert sections == sorted(sections, key=list(SECTIONS).index)


def test_the_default_of_a_choice_is_one_of_its_options() -> None:
    for setting in SCHEMA.values():
        if setting.kind.name == "choice":
            assert setting.default in setting.kind.options
