# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from hichunk_haystack.budgets import share_budget


def test_shares_stay_what_they_are() -> None:
    assert share_budget({"merger": 768, "builder": 1024, "other": None}, 100) == {
        "merger": 75, "builder": 100, "other": 100,
    }  # fmt: skip


def test_nobody_is_left_without_a_token() -> None:
    assert share_budget({"merger": 1, "builder": 1024}, 5) == {"merger": 1, "builder": 5}


def test_without_budgets_of_their_own_all_get_it() -> None:
    assert share_budget({"merger": None, "builder": None}, 7) == {"merger": 7, "builder": 7}
    assert share_budget({}, 7) == {}


def test_what_makes_no_sense_is_left_to_the_components() -> None:
    assert share_budget({"merger": 768, "builder": 1024}, 0) == {"merger": 0, "builder": 0}
