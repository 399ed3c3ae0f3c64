# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Tables and plots of what the benchmark found."""

from collections.abc import Sequence
from pathlib import Path

from hichunk_haystack.evaluation.benchmark import Results
from hichunk_haystack.evaluation.contenders.lineup import OURS

_MARKS = "*sv^DXP<>pd"


def table(results: Results, budgets: Sequence[int], measure: str = "erec") -> str:
    """
    Write results as a Markdown table, the best of each budget but the ceiling in bold.

    :param results: What `benchmark.run` gave.
    :param budgets: Which budgets, one column each.
    :param measure: Which of the scores.
    :returns: The table.
    """
    best = {
        budget: max((scores[budget][measure] for name, scores in results.items() if not _is_ceiling(name)), default=0)
        for budget in budgets
    }
    lines = [
        "| | " + " | ".join(f"{budget:,}" for budget in budgets) + " |",
        "| --- |" + " ---: |" * len(budgets),
    ]
    for name, scores in results.items():
        cells = []
        for budget in budgets:
            value = f"{scores[budget][measure]:.1f}"
            is_best = not _is_ceiling(name) and value == f"{best[budget]:.1f}"
            cells.append(f"**{value}**" if is_best else value)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(results: Results, budgets: Sequence[int], title: str, file: Path) -> None:
    """
    Draw evidence recall over the budget: the ceiling and the rivals in grey, ours in colour.

    :param results: What `benchmark.run` gave.
    :param budgets: Which budgets.
    :param title: What is above the plot.
    :param file: Where to save it; the ending says in which format (.png, .svg).
    :raises ImportError: If matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        msg = "The plot needs matplotlib: pip install 'hichunk-haystack[evaluation]'."
        raise ImportError(msg) from error
    # The legend takes a line for each.
    figure, axes = plt.subplots(figsize=(9, max(5.5, 0.17 * len(results))), layout="constrained")
    colours = plt.get_cmap("tab20")
    for number, (name, scores) in enumerate(results.items()):
        ours = name.startswith(OURS)
        axes.plot(
            budgets,
            [scores[budget]["erec"] for budget in budgets],
            # What is grey is told apart by its mark.
            marker="o" if ours else _MARKS[number % len(_MARKS)],
            markersize=4 if ours else 6,
            color=colours(number % colours.N) if ours else "0.6",
            linestyle="-" if ours else (":" if _is_ceiling(name) else ("--", "-.", (0, (1, 1)))[number % 3]),
            linewidth=2 if ours else 1.2,
            label=name,
            zorder=3 if ours else 2,
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
    axes.set_xlabel("token budget")
    axes.set_ylabel("evidence recall (ERec), %")
    axes.set_title(title)
    axes.grid(visible=True, color="0.92")
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    figure.savefig(file, dpi=130)
    plt.close(figure)


def _is_ceiling(name: str) -> bool:
    return name.startswith("oracle")
