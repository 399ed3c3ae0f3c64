# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The `ContextBuilder` and its budget: what is skipped, what is cut, and that it holds."""

from time import perf_counter

import pytest
from haystack import Document
from haystack.token_counters import ApproximateTokenCounter
from haystack.token_counters.types import TokenCounter
from hypothesis import given, settings
from hypothesis import strategies as st

from hichunk_haystack.components.builders import ContextBuilder
from hichunk_haystack.tokens import HuggingFaceTokenCounter
from tests.components.builders.pieces import MINILM, count

# --- budget


def test_what_does_not_fit_is_skipped_and_the_next_ones_are_tried() -> None:
    documents = [
        Document(content="one two three"),  # "[1]" is 3 tokens, so 6 in all
        Document(content="one two three four five six seven"),  # 10
        Document(content="one two"),  # 5
        Document(content="one"),  # 4
    ]
    result = ContextBuilder(token_budget=11).run(documents)
    assert result["context"] == "[1]\none two three\n\n[2]\none two"
    assert result["tokens_used"] == 11
    assert result["documents"] == [documents[0], documents[2]]
    assert ContextBuilder(token_budget=11).run(documents, token_budget=10)["documents"] == [documents[0], documents[3]]
    assert ContextBuilder(token_budget=11).run(documents, token_budget=25)["documents"] == documents
    assert ContextBuilder(token_budget=11).run(documents, token_budget=24)["documents"] == documents[:3]


@pytest.mark.parametrize(
    ("budget", "shown"),
    [
        # The line is 6 tokens, the first sentence 4, the second 9.
        (6 + 13, "[1] clay.md\nFire it slowly. Then let it cool for a whole day."),
        (6 + 12, "[1] clay.md\nFire it slowly. Then let it cool for a whole"),
        (6 + 6, "[1] clay.md\nFire it slowly."),
        # The line would take more than half: a shorter one is 3 tokens.
        (3 + 8, "[1]\nFire it slowly. Then let it cool"),
        (3 + 5, "[1]\nFire it slowly."),
        (3 + 4, "[1]\nFire it slowly."),
        (3 + 2, "[1]\nFire it"),
        (3 + 1, "[1]\nFire"),
        # Not even that one leaves room.
        (3, "Fire it"),
        (2, "Fire it"),
        (1, "Fire"),
    ],
)
def test_the_best_document_is_cut_where_it_does_not_fit(budget: int, shown: str) -> None:
    text = "Fire it slowly. Then let it cool for a whole day. And so on and on and on."
    meta = {"file_path": "clay.md", "split_idx_start": 50, "split_idx_end": 50 + len(text)}
    result = ContextBuilder().run([Document(content=text, meta=meta)], token_budget=budget)
    assert result["context"] == shown
    citation = result["citations"][0]
    assert citation["truncated"]
    assert text[citation["start"] - 50 : citation["end"] - 50] == shown.rsplit("\n", maxsplit=1)[-1]
    assert result["documents"][0].content == text


def test_a_cut_in_a_text_without_spaces_divides_no_character() -> None:
    family = "👩\u200d👩\u200d👧"
    text = "窯は" + family * 30
    whole = {"窯", *("窯は" + family * number for number in range(30))}
    builder = ContextBuilder(token_counter=ApproximateTokenCounter(chars_per_token=1.0))
    for budget in range(5, 24):
        shown = builder.run([Document(content=text)], token_budget=budget)["context"]
        assert shown.removeprefix("[1]\n") in whole


def test_a_cut_ends_after_a_chinese_full_stop() -> None:
    text = "窑要慢慢地烧。然后冷却一整天。" * 10
    shown = ContextBuilder(token_budget=60).run([Document(content=text)])["context"].removeprefix("[1]\n")
    assert shown.endswith("。")
    assert text.startswith(shown)


def test_a_cut_best_document_leaves_its_rest_of_the_budget_to_the_next() -> None:
    documents = [Document(content="Fire it slowly. A b c d e f g h i j k."), Document(content="Clay.")]
    result = ContextBuilder(token_budget=7 + 5).run(documents)
    assert result["context"] == "[1]\nFire it slowly.\n\n[2]\nClay."
    assert [citation["truncated"] for citation in result["citations"]] == [True, False]


def words(number: int) -> str:
    """So many words of one token each, in sentences of eight tokens."""
    return " ".join("clay." if place % 7 == 6 else "clay" for place in range(number))


def test_the_best_of_those_skipped_is_cut_into_the_rest() -> None:
    # "[1]" is 3 tokens. Sentences of 7 words have 8 tokens: 28 words are 32, and 140 are 160.
    best, long, longer, small = (Document(content=text) for text in (words(7), words(140), words(280), words(14)))
    documents = [best, long, longer, small]
    # 11 for the best, 19 for the small one, 3 for the line, 32 for four sentences of the long one.
    result = ContextBuilder(token_budget=11 + 19 + 3 + 32).run(documents)
    assert result["context"] == f"[1]\n{words(7)}\n\n[2]\n{words(28)}\n\n[3]\n{words(14)}"
    assert result["tokens_used"] == 65
    assert [citation["truncated"] for citation in result["citations"]] == [False, True, False]
    assert result["documents"] == [best, long, small]
    # One token less, and there are 31 at the end of a word; a word is no use where 32 tokens are not left.
    result = ContextBuilder(token_budget=64).run(documents)
    assert result["documents"] == [best, small]
    # A cut goes to the end of a sentence, where more than that would fit.
    result = ContextBuilder(token_budget=65 + 5).run(documents)
    assert result["citations"][1]["tokens"] == 32


@pytest.mark.parametrize(
    ("length", "left", "shown"),
    [
        (14, 8, 7),  # 16 tokens, of which a quarter would be 4: 8 at least
        (14, 7, 0),
        (70, 24, 21),  # 80 tokens: 20
        (70, 20, 0),  # the cut at the end of a sentence leaves 16
        (70, 19, 0),
        (1400, 31, 0),
        (1400, 32, 28),
    ],
)
def test_a_rest_is_used_where_it_holds_enough_of_the_document(length: int, left: int, shown: int) -> None:
    documents = [Document(content="Fire"), Document(content=words(length))]
    result = ContextBuilder(token_budget=4 + 3 + left).run(documents)
    assert result["context"] == "[1]\nFire" + (f"\n\n[2]\n{words(shown)}" if shown else "")


def test_what_follows_on_a_neighbour_is_cut_under_its_citation() -> None:
    first, second = words(14) + " ", words(140) + " "
    place = {"source_id": "s", "file_path": "clay.md"}
    documents = [
        Document(content=first, meta={**place, "split_idx_start": 100, "split_idx_end": 100 + len(first)}),
        Document(
            content=second,
            meta={**place, "split_idx_start": 100 + len(first), "split_idx_end": 100 + len(first + second)},
        ),
        # It would follow on the second one, whose end is missing.
        Document(
            content="Fire.",
            meta={**place, "split_idx_start": 100 + len(first + second), "split_idx_end": 105 + len(first + second)},
        ),
    ]
    # "[1] clay.md" is 6 tokens, the first document 16, the third one 2 and 6.
    result = ContextBuilder(order="reading").run(documents, token_budget=6 + 16 + 8 + 32 + 2)
    assert result["context"] == f"[1] clay.md\n{first}{words(28)}\n\n[2] clay.md\nFire."
    joined = result["citations"][0]
    assert joined["truncated"]
    assert joined["document_ids"] == [documents[0].id, documents[1].id]
    assert (first + second)[joined["start"] - 100 : joined["end"] - 100] == f"{first}{words(28)}"


def test_no_row_of_a_table_is_cut_through() -> None:
    rows = [f"| Mr. Day no. {number} | 9.5 |" for number in range(10, 30)]
    table = "\n".join(["| day | hours |", "|---|---|", *rows])
    documents = [Document(content="Fire"), Document(content=f"Opening hours.\n\n{table}\n")]
    for budget in range(60, 160, 7):
        result = ContextBuilder(token_budget=budget).run(documents)
        *_, row = result["context"].split("\n")
        assert row in rows
        # No other row would have fitted: each has 12 tokens.
        assert budget - result["tokens_used"] < 12
        # Nor of the best document of all.
        *_, row = ContextBuilder(token_budget=budget).run(documents[1:])["context"].split("\n")
        assert row in rows


def test_no_bound() -> None:
    documents = [Document(content=f"Text {number}. " * 200) for number in range(20)]
    result = ContextBuilder().run(documents)
    assert len(result["citations"]) == 20
    assert result["tokens_used"] == count(result["context"]) > 12_000


TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(
        st.sampled_from(["kiln", "Glaze", "9.5", "don't", "…", "\n", "\n\n", "# ", "[2] ", "\r\n", "\t"]), max_size=30
    ).map(" ".join),
    st.text(alphabet="窯釉を掛けて焼く。！", max_size=60),
    st.text(alphabet="😀👩\u200d👧\u0301\ufe0fe", max_size=40),
    st.text(alphabet="abcdefgh", min_size=30, max_size=200),
)


METAS = st.fixed_dictionaries(
    {},
    optional={
        "file_path": st.sampled_from(["a/kiln.md", "b/kiln.md", "/x/y/z.pdf", "窯.md", "\n"]),
        "headings": st.lists(st.one_of(st.sampled_from(["Kiln", "Glaze"]), st.text(max_size=12)), max_size=3),
        "page_number": st.integers(1, 200),
        "title": st.text(max_size=10),
        "table_header": st.sampled_from(["| a | b |\n|---|---|", "| kiln | glaze |\n|---|---|", "|\n\n", "[2] x.md"]),
    },
)


def whole_texts(citation: dict, documents: list[Document]) -> str:
    """The source as far as the documents of a citation tell it, blanks elsewhere."""
    cited = [document for document in documents if document.id in citation["document_ids"]]
    cited.sort(key=lambda document: document.meta["split_idx_start"])
    text = ""
    for document in cited:
        text = text.ljust(document.meta["split_idx_start"]) + (document.content or "")
    return text


@st.composite
def ranked_documents(draw: st.DrawFn) -> list[Document]:
    """Documents of some sources, of which some touch, in any order."""
    documents = []
    start = 0
    for number in range(draw(st.integers(1, 9))):
        text = draw(TEXTS)
        meta = {**draw(METAS), "source_id": draw(st.sampled_from("st"))}
        if draw(st.booleans()):
            meta |= {"split_idx_start": start, "split_idx_end": start + len(text)}
        start += len(text)
        documents.append(Document(id=str(number), content=text, meta=meta, score=draw(st.none() | st.floats(0, 1))))
    return draw(st.permutations(documents))


@pytest.fixture(scope="module", params=["wordpiece", "bpe", "unigram", "approximate"])
def each_counter(request: pytest.FixtureRequest, tokenizer_files: dict[str, str]) -> TokenCounter:
    own: dict[str, TokenCounter] = {"wordpiece": MINILM, "approximate": ApproximateTokenCounter()}
    return own.get(request.param) or HuggingFaceTokenCounter(tokenizer_files[request.param])


@settings(max_examples=40)
@given(data=st.data())
def test_the_context_is_never_above_the_budget(each_counter: TokenCounter, data: st.DataObject) -> None:
    counter = each_counter
    documents = data.draw(ranked_documents())
    order = data.draw(st.sampled_from(["rank", "reading"]))
    separator = data.draw(st.sampled_from(["\n\n", "\n", " -- ", ""]))
    headers = data.draw(st.booleans())
    builder = ContextBuilder(order=order, separator=separator, table_headers=headers, token_counter=counter)
    before = [document.to_dict() for document in documents]
    free = builder.run(documents)
    telling = [document for document in documents if document.id in {each.id for each in free["documents"]}]
    best = telling[0].id if telling else None
    ranks = {document.id: rank for rank, document in enumerate(documents)}
    for budget in data.draw(st.lists(st.integers(1, 200), min_size=1, max_size=3)):
        result = builder.run(documents, token_budget=budget)
        assert count(result["context"], counter) == result["tokens_used"] <= budget
        ids = [document_id for citation in result["citations"] for document_id in citation["document_ids"]]
        assert ids == [document.id for document in result["documents"]]
        assert len(set(ids)) == len(ids)
        cut = [citation for citation in result["citations"] if citation["truncated"]]
        # The best document where it has to be, and the best one of those that did not fit.
        assert len(cut) <= 2
        skipped = [each.id for each in telling if each.id not in ids]
        for citation in cut:
            last = citation["document_ids"][-1]
            assert last == best or not skipped or ranks[last] < ranks[skipped[0]]
        if result["citations"]:
            assert best in ids
        assert order == "reading" or [ranks[each] for each in ids] == sorted(ranks[each] for each in ids)
        for citation in result["citations"]:
            if citation["start"] is not None and citation["end"] is not None:
                shown = whole_texts(citation, documents)[: citation["end"]][citation["start"] :]
                assert shown.strip()
                assert builder._template.guard(shown) in result["context"]
        dense = any(len(document.content or "") > 16 * count(document.content or "", counter) for document in documents)
        if free["tokens_used"] <= budget and not dense:
            assert result == free
    assert [document.to_dict() for document in documents] == before


def test_a_context_that_fits_exactly_is_whole_although_counts_do_not_add_up(tokenizer_files: dict[str, str]) -> None:
    counter = HuggingFaceTokenCounter(tokenizer_files["bpe"])
    documents = [Document(content=f"Fire {number} pots slowly, then wait. " * 3) for number in range(12)]
    builder = ContextBuilder(token_counter=counter)
    free = builder.run(documents)
    assert builder.run(documents, token_budget=free["tokens_used"]) == free
    less = builder.run(documents, token_budget=free["tokens_used"] - 1)
    assert [citation["truncated"] for citation in less["citations"]] == [False] * 11 + [True]


class CountingCounter(ApproximateTokenCounter):
    """Remembers how much it was asked to count."""

    characters = 0

    def count_texts(self, texts: list[str]) -> list[int]:
        self.characters += sum(map(len, texts))
        return [len(text) // 4 for text in texts]


def test_the_cost_does_not_grow_with_the_product_of_documents_and_budget() -> None:
    documents = [Document(content=f"{number} " + "word " * 100) for number in range(400)]
    counter = CountingCounter()
    result = ContextBuilder(token_budget=20_000, token_counter=counter).run(documents)
    assert 150 < len(result["citations"]) < 170
    texts = 400 * 505
    # All texts once, and the context (80,000 characters) a few dozen times; once for each document would be 16 million.
    assert counter.characters < texts + 40 * 80_000


def test_a_huge_text_is_not_counted_again_and_again() -> None:
    counter = CountingCounter()
    text = "x" * 1_000_000
    result = ContextBuilder(token_budget=100, token_counter=counter).run([Document(content=text)])
    assert result["tokens_used"] == 100
    assert counter.characters < 20_000
    start = perf_counter()
    result = ContextBuilder(token_budget=100).run([Document(content="word " * 100_000), Document(content=text)])
    assert 50 <= result["tokens_used"] <= 100
    assert perf_counter() - start < 10


def test_a_word_that_counts_as_one_token_does_not_slip_through() -> None:
    text = "x" * 1_000_000
    assert count(text) == 1
    result = ContextBuilder(token_budget=10).run([Document(content=text), Document(content="Clay.")])
    assert 5 <= len(result["context"]) <= 160
    assert result["citations"][0]["truncated"]


class CostlySeams(ApproximateTokenCounter):
    """Counts a whole as far more than its parts."""

    def count_texts(self, texts: list[str]) -> list[int]:
        return [len(text) // 4 + 5 * text.count("\n\n") ** 2 for text in texts]


@pytest.mark.parametrize("order", ["rank", "reading"])
def test_the_budget_holds_even_for_a_counter_that_makes_no_sense(order: str) -> None:
    documents = [Document(content=f"Fire pot {number}.") for number in range(30)]
    builder = ContextBuilder(order=order, token_counter=CostlySeams())  # type: ignore[arg-type]
    for budget in range(1, 300, 7):
        result = builder.run(documents, token_budget=budget)
        assert CostlySeams().count_texts([result["context"]])[0] <= budget
        assert result["citations"]


def test_a_character_that_does_not_fit_is_cut_through() -> None:
    family = "👩\u200d👩\u200d👧"
    builder = ContextBuilder(token_counter=ApproximateTokenCounter(chars_per_token=1.0))
    assert builder.run([Document(content=family)], token_budget=3)["context"] == family[:3]
