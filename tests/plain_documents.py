# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Ten documents without Markdown, written for the tests, each with the headings that a reader sees."""

_PROSE = (
    "The kiln stands in the yard behind the workshop, and whoever fires it writes the time into the book that hangs "
    "beside the door, so that the next one knows when it was last used."
)

# kind -> (text, [(level, title)])
DOCUMENTS: dict[str, tuple[str, list[tuple[int, str]]]] = {
    "report with decimal numbers": (
        f"1 Introduction\n\n{_PROSE}\n\n1.1 Purpose\n\n{_PROSE}\n\n1.2 Scope\n\n{_PROSE}\n\n1.2.1 Limits\n\n{_PROSE}\n\n"
        f"2 Method\n\nIn 2019 the yard was rebuilt.\n\n2019 was a dry year for potters\n\n{_PROSE}\n\n3 Results\n\n{_PROSE}\n",
        [(1, "Introduction"), (2, "Purpose"), (2, "Scope"), (3, "Limits"), (1, "Method"), (1, "Results")],
    ),
    "treaty with articles": (
        f"PART I\n\nArticle I\n\n{_PROSE}\n\nArticle II\n\n{_PROSE}\n\nPART II\n\nArticle III\n\n{_PROSE}\n\n"
        f"Article IV of this treaty is mentioned here, and {_PROSE}\n\nArticle IV\n\n{_PROSE}\n",
        [
            (1, "PART I"), (2, "Article I"), (2, "Article II"),
            (1, "PART II"), (2, "Article III"), (2, "Article IV"),
        ],
    ),
    "statute with paragraphs": (
        "Abschnitt 1\n\n§ 1 Geltungsbereich\n\nDiese Ordnung gilt für alle Öfen der Werkstatt.\n\n"
        "§ 2 Brennen\n\nGebrannt wird werktags. Näheres regelt\n§ 4 dieser Ordnung.\n\n"
        "Abschnitt 2\n\n§ 3 Haftung\n\nWer brennt, haftet.\n\n§ 3a Versicherung\n\nDie Werkstatt ist versichert.\n",
        [
            (1, "Abschnitt 1"), (2, "§ 1 Geltungsbereich"), (2, "§ 2 Brennen"),
            (1, "Abschnitt 2"), (2, "§ 3 Haftung"), (2, "§ 3a Versicherung"),
        ],
    ),
    "manual in capitals": (
        f"GETTING STARTED\n\n{_PROSE}\n\n1. Open the door.\n2. Switch on the fan.\n3. Close the door.\n\n"
        f"FIRING\n\n{_PROSE}\n\nWARNING! HOT.\n\nCOOLING DOWN\n\n{_PROSE}\n",
        [(1, "GETTING STARTED"), (1, "FIRING"), (1, "COOLING DOWN")],
    ),
    "article with title case": (
        f"{_PROSE}\n\nThe Early Years\n\n{_PROSE}\n\nA New Workshop in the Yard\n\n{_PROSE}\n\n"
        f"Ada Fox\nHarbour Street 7\nPort Ellen\n\nLater Work\n\n{_PROSE}\n",
        [(1, "The Early Years"), (1, "A New Workshop in the Yard"), (1, "Later Work")],
    ),
    "notes with bold lines": (
        f"**Clay**\n\n{_PROSE}\n\n{_PROSE} **Not this.** {_PROSE}\n\n**Glaze:**\n\n{_PROSE}\n",
        [(1, "Clay"), (1, "Glaze")],
    ),
    "readme with underlines": (
        f"Kiln Handbook\n=============\n\n{_PROSE}\n\nFiring\n------\n\n{_PROSE}\n\nCooling\n-------\n\n{_PROSE}\n\n"
        f"Appendix to the handbook\n========================\n\n{_PROSE}\n\n--------\n\n{_PROSE}\n",
        [(1, "Kiln Handbook"), (2, "Firing"), (2, "Cooling"), (1, "Appendix to the handbook")],
    ),
    "abstract with labels": (
        f"Background:\n{_PROSE}\n\nMethods:\n{_PROSE}\n\nResults:\n{_PROSE}\n\nWe thank the following, in order: nobody.\n",
        [(1, "Background"), (1, "Methods"), (1, "Results")],
    ),
    "e-mail": (
        "From: Ada <ada@kiln.example>\nTo: Ben <ben@kiln.example>\nSubject: Firing Plan\n\nDear Ben,\n\n"
        f"{_PROSE}\n\n1. Bring the clay\n2. Bring the glaze\n3. Bring a lamp\n\nOn Monday, Ada wrote:\n> 1 Kiln\n>\n> {_PROSE}\n\n"
        "Best wishes\n\nAda\n\n-- \nAda Fox\nPottery Workshop\n",
        [],
    ),
    "pages of a paper": (
        f"ABSTRACT\n\n{_PROSE}\n\n1. INTRODUCTION\n\n{_PROSE}\n\f2. KILNS\n\n{_PROSE}\n\n2.1. Gas Kilns\n\n{_PROSE}\n\n"
        f"Kiln | Hours\nGas | 8\nWood | 30\n\n\f2.2. Wood Kilns\n\n{_PROSE}\n\n3. CONCLUSION\n\n{_PROSE}\n\nREFERENCES\n\n{_PROSE}\n",
        [
            (1, "ABSTRACT"), (1, "INTRODUCTION"), (1, "KILNS"), (2, "Gas Kilns"),
            (2, "Wood Kilns"), (1, "CONCLUSION"), (1, "REFERENCES"),
        ],
    ),
}  # fmt: skip
