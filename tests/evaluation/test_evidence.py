# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""
ERec and character scores.

The expected ERec values are worked out by hand from the published definition: lower case, without ASCII punctuation,
without the words a, an and the, white space as single spaces; a piece of evidence counts when it then is part of the
context, and weighs as many characters as it has as it stands.
"""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hichunk_haystack.evaluation.evidence import (
    SpanScores,
    evidence_recall,
    length,
    normalise,
    overlap,
    span_scores,
    span_scores_of_sources,
    union,
)

KILN = "The kiln is fired slowly. Then it cools for a day."

TRICKY = {
    # 16 characters ("The kiln is hot.") are found, since "the" goes on both sides: "kiln is hot".
    "articles": (["The kiln is hot."], "An oven; the potter's kiln is hot", 1.0),
    # "dont worry its hot" on both sides.
    "punctuation": (["\"Don't worry\" - it's hot!"], "dont worry its hot", 1.0),
    # "# Firing" is "firing"; the other one, of 8 characters, is not there: 8 of 16.
    "heading marks": (["# Firing", "# Glazes"], "Firing\n\nSlowly.", 0.5),
    # The same sentence twice weighs twice: (11 + 11) of (11 + 11 + 11).
    "repeated sentences": (["Fire slowly", "Fire slowly", "Glaze twice"], "Fire slowly.", 2 / 3),
    # Nothing was asked for: 0 by definition.
    "no evidence": ([], KILN, 0.0),
    # An empty text weighs nothing, so that nothing is divided by nothing: 0.
    "empty evidence": ([""], KILN, 0.0),
    # "---" is reduced to nothing, and nothing is part of any context: 3 of 3 + 7.
    "only punctuation": (["---", "Unglaze"], KILN, 0.3),
    # "the" and "an" inside "thean" stay, so that "thean ditch" is not "ditch": 13 of 13 + 11.
    "articles inside words": (["Then it cools", "thean ditch"], f"{KILN} Ditch.", 13 / 24),
    # Case goes.
    "case": (["THE KILN IS FIRED SLOWLY"], KILN, 1.0),
    # Line breaks and tabs are white space like any other.
    "line breaks": (["kiln\r\n\tis   fired\nslowly"], KILN, 1.0),
    # Typographic marks are not ASCII: ’ stays in the evidence, ' goes from the context: potter’s is not potters.
    "typographic punctuation stays": (["potter’s kiln"], "potter's kiln", 0.0),
    # What the dash held apart is joined: "wellfired".
    "hyphens join": (["well-fired"], "wellfired and well fired", 1.0),
    # An article between two words leaves no double space behind.
    "article in the middle": (["fire a kiln"], "fire kiln", 1.0),
    # Only half of a sentence is in the context: nothing of it counts. 25 of 25 + 24.
    "cut in two": (["The kiln is fired slowly.", "Then it cools for a day."], KILN[:40], 25 / 49),
}


@pytest.mark.parametrize(("evidences", "context", "expected"), TRICKY.values(), ids=TRICKY.keys())
def test_evidence_recall(evidences: list[str], context: str, expected: float) -> None:
    assert evidence_recall(evidences, context) == pytest.approx(expected)


def test_a_word_may_be_found_inside_another() -> None:
    # As published: part of the text, not a whole word of it.
    assert evidence_recall(["kiln"], "kilns") == 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  A an THE", ""),
        ("Theatre, an-other: anthem", "theatre another anthem"),
        ("An apple a day.", "apple day"),
        ("a.b", "ab"),
        # A dot between article and word joins them before articles are looked for.
        ("the.kiln", "thekiln"),
        ("5 °C – heiß", "5 °c – heiß"),
        ("\u00a0non\u2003breaking\u2028line ", "non breaking line"),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("evidence", "retrieved", "expected"),
    [
        # 10 wanted, 20 retrieved, 5 in both, 25 in either.
        ([(0, 10)], [(5, 25)], SpanScores(0.5, 0.25, 0.2)),
        # What was retrieved twice counts once.
        ([(0, 10)], [(5, 25), (5, 25), (10, 20)], SpanScores(0.5, 0.25, 0.2)),
        # Evidence in two places, the second retrieved whole: 4 of 8, 4 of 4, 4 of 8.
        ([(0, 4), (10, 14)], [(10, 14)], SpanScores(0.5, 1.0, 0.5)),
        # Touching, not overlapping.
        ([(0, 4)], [(4, 8)], SpanScores(0.0, 0.0, 0.0)),
        ([], [(0, 4)], SpanScores(0.0, 0.0, 0.0)),
        ([(0, 4)], [], SpanScores(0.0, 0.0, 0.0)),
        # An empty span holds no character.
        ([(2, 2), (4, 8)], [(8, 8), (4, 6)], SpanScores(0.5, 1.0, 0.5)),
    ],
)
def test_span_scores(evidence: list[tuple[int, int]], retrieved: list[tuple[int, int]], expected: SpanScores) -> None:
    assert span_scores(evidence, retrieved) == pytest.approx(expected)


def test_spans_of_another_source_are_noise() -> None:
    # Of 10 characters 5 are found; 5 + 15 were retrieved; 25 are in either.
    scores = span_scores_of_sources({"kiln": [(0, 10)]}, {"kiln": [(5, 10)], "wheel": [(0, 15)]})
    assert scores == pytest.approx(SpanScores(0.5, 0.25, 5 / 25))


def test_union_by_hand() -> None:
    assert union([(7, 9), (0, 3), (3, 5), (4, 6), (9, 9), (8, 2)]) == [(0, 6), (7, 9)]
    assert overlap([(0, 6), (7, 9)], [(5, 8)]) == 2
    assert length([(0, 6), (7, 9)]) == 8


spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8)


def characters(of: list[tuple[int, int]]) -> set[int]:
    """The characters of spans, one by one."""
    return {place for start, end in of for place in range(start, end)}


@given(spans, spans)
def test_against_sets_of_characters(evidence: list[tuple[int, int]], retrieved: list[tuple[int, int]]) -> None:
    wanted, got = characters(evidence), characters(retrieved)
    joined = union(evidence)
    assert characters(joined) == wanted
    assert all(end < start for (_, end), (start, _) in pairwise(joined))
    assert length(joined) == len(wanted)
    assert overlap(joined, union(retrieved)) == len(wanted & got)
    assert span_scores(evidence, retrieved) == pytest.approx(
        SpanScores(
            len(wanted & got) / len(wanted) if wanted else 0.0,
            len(wanted & got) / len(got) if got else 0.0,
            len(wanted & got) / len(wanted | got) if wanted and got else 0.0,
        )
    )


@given(st.text(), st.text(), st.text())
def test_what_stands_in_the_context_is_found(before: str, evidence: str, after: str) -> None:
    context = f"{before}\n{evidence}\n{after}"
    assert evidence_recall([evidence], context) == (1.0 if evidence else 0.0)
