# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""One budget for all components of a pipeline that keep to one."""

from collections.abc import Mapping


def share_budget(own: Mapping[str, int | None], budget: int) -> dict[str, int]:
    """
    Give each component its part of another budget, in proportion to what it has of the pipeline's own.

    In `query_neighbours.yml` the merge has three quarters of the budget of the context: it has three quarters of any.

    ```python
    from hichunk_haystack.budgets import share_budget

    print(share_budget({"merger": 768, "context_builder": 1024}, 2000))  # {'merger': 1500, 'context_builder': 2000}
    ```

    :param own: Budget of each component in tokens; `None` where it has none of its own, which gives it all.
    :param budget: The other budget in tokens.
    :returns: Each component's budget in tokens, at least 1 where the other one is.
    """
    largest = max((tokens for tokens in own.values() if tokens), default=None)
    return {
        name: max(min(1, budget), budget * tokens // largest) if tokens and largest else budget
        for name, tokens in own.items()
    }
