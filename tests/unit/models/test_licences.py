"""What is known of a licence by its name."""

import pytest

from fleetapp.models.licences import licence
from fleetapp.types import Licence


@pytest.mark.parametrize("name", ["Apache-2.0", "apache-2.0", " APACHE-2.0 "])
def test_case_makes_no_difference(name: str) -> None:
    found = licence(name)
    assert (found.id, found.accept) == (name.strip(), False)
    assert found.url == "https://www.apache.org/licenses/LICENSE-2.0"


@pytest.mark.parametrize("name", ["gemma", "Gemma", "llama2", "llama3", "llama3.1", "llama3.3"])
def test_contracts_with_rules_of_use_have_to_be_agreed_to(name: str) -> None:
    found = licence(name)
    assert found.accept
    assert found.url.startswith("https://")


def test_what_nobody_knows_is_shown_as_it_is() -> None:
    assert licence("Büro-1.0") == Licence("Büro-1.0")
    assert licence("") == licence("unknown") == licence("other") == Licence("")
    assert licence("https://x.example/l") == Licence("https://x.example/l", "https://x.example/l")
    assert licence("javascript:alert(1)").url == ""
    assert licence('https://x" onclick="y').url == ""
