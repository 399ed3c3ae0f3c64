# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest

from hichunk_haystack.evaluation.datasets import load_dataset
from hichunk_haystack.evaluation.dense import dense_questions, hide_headings
from hichunk_haystack.markdown import parse_markdown
from tests.conftest import DATA

SENTENCES = " ".join(f"Sentence number {number} tells of the kiln." for number in range(6))


def page(*titles: str) -> str:
    return "\n".join(f"## {title}\n\n{SENTENCES}\n" for title in titles)


@pytest.mark.parametrize(
    ("markdown", "hidden", "cuts"),
    [
        ("# A\n\nText.\n\n## B\n\nMore.\n", "\nText.\n\n\nMore.\n", [(0, 1), (8, 2)]),
        ("Title\n=====\n\nText.\n\nSub\n---\nMore.\n", "\nText.\n\nMore.\n", [(0, 1), (8, 2)]),
        # A setext heading of two lines.
        ("Text.\n\nLong\ntitle\n===\nMore.", "Text.\n\nMore.", [(7, 1)]),
        # No blank line in front: the paragraphs must not become one.
        ("Text\n# A\nmore", "Text\n\nmore", [(6, 1)]),
        # Closing marks, no title, no end of line.
        ("## A ##\n#\n# B", "", [(0, 2), (0, 1), (0, 1)]),
        # Not a heading: code, too many marks, no space.
        ("```\n# no\n```\n\n####### no\n\n#no\n", "```\n# no\n```\n\n####### no\n\n#no\n", []),
        # A rule below a heading does not make one of the line in front.
        ("Text\n# A\n---\nmore\n", "Text\n\n---\nmore\n", [(6, 1)]),
        ("# A\r\n\r\nText.\r\n# B\r\nMore.\r\n", "\r\nText.\r\n\nMore.\r\n", [(0, 1), (10, 1)]),
        ("# A\rText.\r\r# B\rMore.\r", "Text.\r\rMore.\r", [(0, 1), (7, 1)]),
    ],
)
def test_heading_lines_are_taken_out(markdown: str, hidden: str, cuts: list[tuple[int, int]]) -> None:
    result = hide_headings(markdown)
    assert result.text == hidden
    assert [(cut.offset, cut.level) for cut in result.cut_points] == cuts
    assert parse_markdown(result.text).headings == []


@pytest.mark.parametrize(
    ("markdown", "shown", "offsets"),
    [
        ("# A\n\nText.\n\n## B ##\n\nMore.\n", "A\n\nText.\n\nB\n\nMore.\n", [0, 10]),
        ("Title\n=====\nText.", "Title\nText.", [0]),
        ("# A\n---\nText.", "A\n\n---\nText.", [0]),
    ],
)
def test_only_the_marks_are_taken_out(markdown: str, shown: str, offsets: list[int]) -> None:
    result = hide_headings(markdown, keep_lines=True)
    assert result.text == shown
    assert [cut.offset for cut in result.cut_points] == offsets
    assert parse_markdown(result.text).headings == []


def test_titles_from_the_top_down() -> None:
    result = hide_headings("# A\n\n### B\n\n## C\n\n# D\n")
    assert result.sections == [["A"], ["A", "B"], ["A", "C"], ["D"]]


def test_questions_are_sections() -> None:
    documents = {"0042-kiln-use": f"# Kiln use\n\nIntro.\n\n{page('Bisque firing', 'Glaze_firing, 2nd')}"}
    dataset, hidden = dense_questions(documents, least_sections=1)
    assert [question.text for question in dataset.questions] == [
        # The title says the name again, which the number in front does not change.
        "kiln use",
        "kiln use bisque firing",
        "kiln use glaze firing 2nd",
    ]
    text = dataset.documents["0042-kiln-use"]
    assert hidden["0042-kiln-use"].text == text
    assert "#" not in text
    assert "firing" not in text
    whole, first, second = dataset.questions
    assert len(whole.evidences) == 13
    assert len(first.evidences) == len(second.evidences) == 6
    assert first.evidences[5] == "Sentence number 5 tells of the kiln."
    assert first.spans[-1][1] < second.spans[0][0]
    for question in dataset.questions:
        assert [text[start:end] for start, end in question.spans] == list(question.evidences)


def test_sections_outside_of_the_bounds_are_not_asked_for() -> None:
    documents = {"kiln": f"# Short\n\nOne. Two.\n\n{page('Long')}"}
    dataset, _ = dense_questions(documents, least_sections=1, least_sentences=3, most_sentences=7)
    assert [question.text for question in dataset.questions] == ["kiln short long"]
    dataset, _ = dense_questions(documents, least_sections=1, least_sentences=1, most_sentences=2)
    assert dataset.questions == []
    assert dense_questions({})[0].documents == {}


def test_the_draw_depends_on_the_seed_alone() -> None:
    documents = {f"{name}": page(*"ABCDEF") for name in ("kiln", "wheel", "glaze", "clay", "shelf")}
    turned = dict(reversed(documents.items()))
    one, _ = dense_questions(documents, documents_used=3, questions=7, seed=3)
    same, _ = dense_questions(turned, documents_used=3, questions=7, seed=3)
    other, _ = dense_questions(documents, documents_used=3, questions=7, seed=4)
    assert one.questions == same.questions
    assert list(one.documents) == list(same.documents)
    assert len(one.questions) == len(other.questions) == 7
    assert len(one.documents) == 3
    assert one.questions != other.questions


@pytest.fixture(scope="module")
def rust_rfcs() -> dict[str, str]:
    folder: Path = DATA / "rust_rfcs"
    if not folder.is_dir():
        pytest.skip("the data set rust_rfcs is not on this machine")
    # Every fourth document: the whole set takes its time.
    return dict(list(load_dataset(folder).documents.items())[::4])


def test_no_answer_is_given_away(rust_rfcs: dict[str, str]) -> None:
    dataset, hidden = dense_questions(rust_rfcs, documents_used=25, questions=100)
    assert len(dataset.questions) == 100
    for name, text in dataset.documents.items():
        assert parse_markdown(text).headings == []
        removed = {title.strip() for _, _, title in parse_markdown(rust_rfcs[name]).headings if title}
        lines = {line.strip(" #") for line in text.splitlines() if line.lstrip().startswith("# ")}
        # What is left with marks stands in listings.
        assert len(removed) > 0
        assert not (lines & removed) or "```" in text
    for question in dataset.questions:
        text = dataset.documents[question.document]
        assert 5 <= len(question.evidences) <= 40
        assert [text[start:end] for start, end in question.spans] == list(question.evidences)
        assert all(evidence == evidence.strip() for evidence in question.evidences)
        assert question.spans == tuple(sorted(question.spans))
    assert dense_questions(rust_rfcs, documents_used=25, questions=100)[0] == dataset
    assert hidden.keys() == dataset.documents.keys()
