# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable, Sequence
from typing import Any, Literal

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.token_counters.types import TokenCounter

from hichunk_haystack.components.builders.citations import CitationTemplate, headings_of, short_names, source_of
from hichunk_haystack.components.builders.fitting import choose, cut_passage, useful_tokens
from hichunk_haystack.components.builders.layout import Layout
from hichunk_haystack.components.builders.passages import Passage, arrange, says_nothing_new
from hichunk_haystack.components.builders.table_headers import header_of
from hichunk_haystack.tokens import HuggingFaceTokenCounter, count_texts, is_additive, warm_up_counter
from hichunk_haystack.weights import weigh

# How often a document that fills a rest of the budget is cut again, where the counts of the parts do not add up.
_TRIES = 4


@component
class ContextBuilder:
    """
    Builds one string for a prompt from ranked documents, each under a numbered citation line, within a token budget.

    ```text
    [1] handbook/kiln.md > Firing > Glaze firing
    Cone 6 takes nine hours up and eighteen hours down.

    [2] handbook/wheel.md > Centring
    Centre the clay before you open it.
    ```

    The budget bounds the string as a whole, with citation lines and separators, by the token counter. A document that
    does not fit is skipped, and the next ones are tried. Then the best of those skipped is cut to what is left of the
    budget, if that holds 32 tokens of it or a quarter (8 tokens at least). It is cut behind a row of a table or at the
    end of a sentence (else of a word, else of a character); its citation is marked as truncated. If not even the best
    document of all fits, it is cut, however little is left; where the budget is too small even for that, the citation
    line is shortened, then left out. Some tokenizers count any word of more than 100 characters as one token: 16
    characters take at least one token of the budget here.

    Headings at the start of a document that its citation line holds are not printed again, and a document that is
    nothing else is left out, unless there is no other one. A document that starts in the middle of a table
    (`table_header` in its meta, as our splitters write it for leaves) has the table's header above it, unless the
    passage in front shows it. A line of a document that looks like a citation line ("[2] ...") gets a backslash in
    front, so that no document can pass text off as another source's. Nothing else is changed.

    ```python
    from haystack import Document

    from hichunk_haystack.components.builders import ContextBuilder

    documents = [
        Document(content="# Kiln\\n\\nFire it slowly.", meta={"file_path": "docs/kiln.md", "headings": ["Kiln"]}),
        Document(content="Centre the clay.", meta={"file_path": "docs/wheel.md"}),
    ]
    print(ContextBuilder(token_budget=100).run(documents)["context"])
    # [1] docs/kiln.md > Kiln
    # Fire it slowly.
    #
    # [2] docs/wheel.md
    # Centre the clay.
    ```
    """

    __module__ = "hichunk_haystack.components.builders"

    def __init__(
        self,
        token_budget: int | None = None,
        *,
        order: Literal["rank", "reading"] = "rank",
        separator: str = "\n\n",
        citation_template: str = "[{number}] {place}",
        path_parts: int | None = 2,
        table_headers: bool = True,
        token_counter: TokenCounter | None = None,
    ) -> None:
        """
        Create the component.

        :param token_budget: The most tokens of the context; `None` sets no bound.
        :param order: "rank" shows the documents in the order given. "reading" shows the sources in the order of their
            best documents, and inside a source by place; neighbours that touch under the same headings share one
            citation.
        :param separator: What stands between one document and the next citation line.
        :param citation_template: The citation line in the style of `str.format`, with the fields `number`, `place`
            (source, page and headings: "manual.pdf, page 3 > Firing"), `source`, `headings`, `page` and `score`.
            Headings are shown up to 100 characters each.
        :param path_parts: How many of the last parts of a file's path to show, more where two files would look the
            same; `None` shows whole paths.
        :param table_headers: Whether to show the header of a table above a passage that starts in the middle of it.
            Headers of more than 1,000 characters are not shown.
        :param token_counter: Counts tokens; by default the tokenizer of all-MiniLM-L6-v2. Use the tokenizer of the
            model that reads the prompt.
        :raises ValueError: If an option makes no sense; the message names it.
        """
        _check_budget(token_budget)
        if order not in ("rank", "reading"):
            msg = f"order is '{order}'; it must be 'rank' or 'reading'."
            raise ValueError(msg)
        if path_parts is not None and path_parts < 1:
            msg = f"path_parts is {path_parts}; it must be at least 1, or None for whole paths."
            raise ValueError(msg)
        self.token_budget = token_budget
        self.order = order
        self.separator = separator
        self.citation_template = citation_template
        self.path_parts = path_parts
        self.table_headers = table_headers
        self.token_counter = token_counter
        self._template = CitationTemplate(citation_template)
        self._counter: TokenCounter = token_counter or HuggingFaceTokenCounter()

    def warm_up(self) -> None:
        """Load the token counter."""
        warm_up_counter(self._counter)

    @component.output_types(context=str, citations=list[dict[str, Any]], tokens_used=int, documents=list[Document])
    def run(self, documents: list[Document], token_budget: int | None = None) -> dict[str, Any]:
        """
        Build the context.

        :param documents: Documents in rank order, best first. They are not changed; those without text, and one that
            comes twice, are left out; so are those that are nothing but headings that their citation lines hold.
        :param token_budget: Token budget for this run instead of the component's.
        :returns: A dictionary with:
            - `context`: the string; empty without documents.
            - `citations`: for each citation line a dictionary of "number", "source" (the file's whole path, else URL,
              title or id), "headings", "page", "score" (the best one), "start" and "end" (offsets in the source, in
              characters, of what is shown of its text; `None` where not known), "tokens" (of what is shown, with the
              header of a table above it), "truncated" (the end is missing: cut off here, or by the merge before) and
              "document_ids".
            - `tokens_used`: length of the context in tokens.
            - `documents`: the documents shown, whole and as they came, in the order of the context. In rank order
              citation n is the n-th of them.
        :raises ValueError: If the budget is below 1.
        """
        budget = _check_budget(self.token_budget if token_budget is None else token_budget)
        usable = _usable(documents, self._template.shows_headings)
        names = short_names(usable, self.path_parts)
        context = Layout(usable, self._template, self.separator, self.order, names, self.table_headers)
        if not usable:
            return {"context": "", "citations": [], "tokens_used": 0, "documents": []}
        chosen = list(range(len(usable)))
        if budget is not None:
            chosen = self._fill(context, self._choose(context, budget), budget)
        return self._answer(context, chosen)

    def _choose(self, context: Layout, budget: int) -> list[int]:
        """Numbers of the documents that fit; the best one is cut where it has to be."""
        if self._weigh([context.text([0])], budget)[0] > budget and not self._cut(context, budget):
            return []
        passages = arrange(context.documents, "rank", context.cuts, self._template.shows_headings)
        lines = [context.line(number, passage) for number, passage in enumerate(passages, 1)]
        line_tokens = self._weigh([f"{line}\n" for line in lines], budget)
        text_tokens = self._weigh([self._template.guard(passage.text) for passage in passages], budget)
        between = self._weigh([self.separator], budget)[0]
        # Whether a table's header is shown depends on what stands in front, which in reading order may change later.
        headers = [header_of(passage) if self.table_headers else "" for passage in passages]
        header_tokens = self._weigh(
            [self._template.guard(f"{header}\n") if header else "" for header in headers], budget
        )
        # In reading order a document may join its neighbour, under whose citation line it stands then.
        joins = self.order == "reading"
        if joins:
            header_tokens = [max(header_tokens)] * len(header_tokens)
        costs = [
            (text if joins else line + text + between, line + text + between + header)
            for line, text, header in zip(line_tokens, text_tokens, header_tokens, strict=True)
        ]
        exact = is_additive(self._counter) and self.separator.isspace() and not joins and not any(headers)
        return choose(costs, budget, lambda numbers: self._weigh([context.text(numbers)], budget)[0], exact)

    def _cut(self, context: Layout, budget: int) -> bool:
        """Cut the best document so that it fits; `False` if nothing of it does."""
        best = context.documents[0].id
        header = context.passages([0])[0].header
        # What takes more than half of the budget makes way for the text.
        if header and 2 * self._weigh([header], budget)[0] > budget:
            context.headerless.add(best)
        passage = context.passages([0])[0]
        for shortness in range(4):
            context.shortness[best] = shortness
            line = context.line(1, passage)
            if shortness < 2 and 2 * self._weigh([line], budget)[0] > budget:  # noqa: PLR2004 - see `Layout.shortness`
                continue
            end = cut_passage(passage.text, self._fits(context, line, passage, budget))
            if end:
                context.cuts[best] = passage.lead + end
                return True
        return False

    def _fill(self, context: Layout, chosen: list[int], budget: int) -> list[int]:
        """Cut the best document that was skipped to what is left of the budget, where that is of use."""
        skipped = next((number for number in range(len(context.documents)) if number not in set(chosen)), None)
        if skipped is None or not chosen:
            return chosen
        room = budget - self._weigh([context.text(chosen)], budget)[0]
        if room < useful_tokens(0):
            return chosen
        document = context.documents[skipped]
        numbers = sorted([*chosen, skipped])
        # A document that is cut stands under the citation of what it follows on, but joins nothing behind it.
        context.cuts[document.id] = len(document.content or "")
        passages = context.passages(numbers)
        place = next(place for place, each in enumerate(passages) if any(one is document for one in each.documents))
        passage, line = passages[place], ""
        if passage.documents[0] is document:
            line = context.line(place + 1, passage)
            room -= self._weigh([self.separator], budget)[0]
        else:
            passage = Passage([document], (document.content or "").rstrip(), None, None)
        text = passage.text
        least = useful_tokens(self._weigh([text], max(budget, 4 * useful_tokens(budget)))[0])
        best = 0
        for _ in range(_TRIES):
            end = cut_passage(text, self._fits(context, line, passage, room))
            if end <= best or self._weigh([text[:end]], budget)[0] < least:
                break
            context.cuts[document.id] = passage.lead + end
            # Counts do not add up in general, and the header of a table may move from a passage to this one.
            over = self._weigh([context.text(numbers)], budget)[0] - budget
            best = end if over <= 0 else best
            room -= over
        context.cuts[document.id] = passage.lead + best
        return numbers if best else chosen

    def _fits(self, context: Layout, line: str, passage: Passage, budget: int) -> Callable[[str], bool]:
        return lambda text: self._weigh([context.block(line, passage.show(text))], budget)[0] <= budget

    def _answer(self, context: Layout, chosen: list[int]) -> dict[str, Any]:
        passages = context.passages(chosen)
        text = context.text(chosen)
        shown = [self._template.guard(passage.show(passage.text)) for passage in passages]
        whole, *tokens = self._count([text, *shown])
        return {
            "context": text,
            "citations": [
                _citation(number, passage, count)
                for number, (passage, count) in enumerate(zip(passages, tokens, strict=True), 1)
            ],
            "tokens_used": whole,
            "documents": [document for passage in passages for document in passage.documents],
        }

    def _count(self, texts: Sequence[str]) -> list[int]:
        return count_texts(self._counter, texts)

    def _weigh(self, texts: Sequence[str], budget: int) -> list[int]:
        """Lengths as the budget sees them: in tokens, or by characters where these are too many for the tokens."""
        weights = [weigh(text) for text in texts]
        # What is too long by its characters alone need not be tokenised.
        counts = iter(self._count([text for text, weight in zip(texts, weights, strict=True) if weight <= budget]))
        return [max(weight, next(counts)) if weight <= budget else weight for weight in weights]

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(
            self,
            token_budget=self.token_budget,
            order=self.order,
            separator=self.separator,
            citation_template=self.citation_template,
            path_parts=self.path_parts,
            table_headers=self.table_headers,
            token_counter=self.token_counter,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ContextBuilder":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)


def _citation(number: int, passage: Passage, tokens: int) -> dict[str, Any]:
    first = passage.documents[0]
    scores = [float(document.score) for document in passage.documents if document.score is not None]
    return {
        "number": number,
        "source": source_of(first),
        "headings": headings_of(first),
        "page": first.meta.get("page_number"),
        "score": max(scores, default=None),
        "start": passage.start,
        "end": passage.end,
        "tokens": tokens,
        "truncated": passage.truncated,
        "document_ids": [document.id for document in passage.documents],
    }


def _usable(documents: Sequence[Document], shows_headings: bool) -> list[Document]:
    """The documents that have text, each once, without those that say no more than their citation line."""
    usable: dict[str, Document] = {}
    for document in documents:
        if document.content and not document.content.isspace():
            usable.setdefault(document.id, document)
    telling = [each for each in usable.values() if not (shows_headings and says_nothing_new(each))]
    # Where there is nothing else, a title alone may be the answer.
    return telling or list(usable.values())


def _check_budget(budget: int | None) -> int | None:
    if budget is not None and budget < 1:
        msg = f"token_budget is {budget}; it must be at least 1 token, or None for no bound."
        raise ValueError(msg)
    return budget
