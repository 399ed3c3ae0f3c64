# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""The string made of some of the documents."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from haystack import Document

from hichunk_haystack.components.builders.citations import CitationTemplate, headings_of, source_of
from hichunk_haystack.components.builders.passages import Passage, arrange
from hichunk_haystack.components.builders.table_headers import add_headers


@dataclass
class Layout:
    """
    The string made of some of the documents, which are given by their ranks.

    :param documents: All documents, best first.
    :param template: Writes the citation lines.
    :param separator: What stands between a document and the next citation line.
    :param order: "rank" or "reading".
    :param names: Source -> its short name.
    :param table_headers: Whether to show the header of a table above a passage that starts in the middle of it.
    :param cuts: Document id -> how many characters of its content are left.
    :param shortness: Document id -> what its citation line has to do without: 1 the headings, 2 all but the number,
        3 all of it.
    :param headerless: Ids of documents that do without a table's header.
    """

    documents: list[Document]
    template: CitationTemplate
    separator: str
    order: str
    names: dict[str, str]
    table_headers: bool = True
    cuts: dict[str, int] = field(default_factory=dict)
    shortness: dict[str, int] = field(default_factory=dict)
    headerless: set[str] = field(default_factory=set)

    def passages(self, numbers: Sequence[int]) -> list[Passage]:
        """Arrange some of the documents."""
        chosen = [self.documents[number] for number in numbers]
        passages = arrange(chosen, self.order, self.cuts, self.template.shows_headings)
        if self.table_headers:
            add_headers(passages, self.headerless)
        return passages

    def text(self, numbers: Sequence[int]) -> str:
        """Write some of the documents."""
        passages = self.passages(numbers)
        blocks = [self.block(self.line(number, each), each.show(each.text)) for number, each in enumerate(passages, 1)]
        return self.separator.join(blocks)

    def block(self, line: str, text: str) -> str:
        """Write a text under its citation line, if it has one."""
        return f"{line}\n{self.template.guard(text)}" if line else self.template.guard(text)

    def line(self, number: int, passage: Passage) -> str:
        """Write the citation line of a passage."""
        document = passage.documents[0]
        shortness = self.shortness.get(document.id, 0)
        if shortness > 1:
            return self.template.bare(number) if shortness == 2 else ""  # noqa: PLR2004 - see `shortness`
        headings = [] if shortness else headings_of(document)
        return self.template.line(number, document, self.names[source_of(document)], headings)
