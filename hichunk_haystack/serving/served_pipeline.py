# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from haystack import Pipeline

from hichunk_haystack.budgets import share_budget
from hichunk_haystack.loading import ALLOWED_MODULES

_CONVERTER = "hichunk_haystack.components.converters.FileConverter"


class ServedPipeline:
    """
    A YAML pipeline, used by the names of its `inputs` and `outputs` as hayhooks would.

    ```python
    import asyncio

    from hichunk_haystack.pipeline_files import pipeline_file
    from hichunk_haystack.serving import ServedPipeline

    query = ServedPipeline(pipeline_file("query"))
    answer = asyncio.run(query.run({"query": "Who owns the safety page?"}, token_budget=500))
    print(answer["tokens_used"])  # 0: nothing is indexed
    query.pipeline.close()
    ```
    """

    def __init__(self, path: str | Path, *, root: str | Path | None = None) -> None:
        """
        Load the pipeline. Models and stores open at the first run.

        :param path: The YAML file.
        :param root: Folder that its `FileConverter` reads from and names sources by, instead of what the file says.
        :raises FileNotFoundError: If there is no such file.
        :raises ValueError: If the file does not say what goes in and out, or has no `FileConverter` for the root.
        """
        data = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        self._inputs, self._outputs = (_places(data, kind, path) for kind in ("inputs", "outputs"))
        if root is not None:
            converters = [each for each in data["components"].values() if each["type"] == _CONVERTER]
            if not converters:
                msg = f"The pipeline {path} has no FileConverter, so it can't index files: name one that has."
                raise ValueError(msg)
            for each in converters:
                each["init_parameters"] = {**(each.get("init_parameters") or {}), "root": str(root)}
        self.pipeline = Pipeline.loads(yaml.safe_dump(data, sort_keys=False), allowed_modules=ALLOWED_MODULES)
        takers = [name for name, sockets in self.pipeline.inputs().items() if "token_budget" in sockets]
        self._budgets = {name: getattr(self.pipeline.get_component(name), "token_budget", None) for name in takers}

    def find(self, kind: type) -> Any:
        """
        Find a component by its class.

        :param kind: The class.
        :returns: The component.
        :raises ValueError: If there is none.
        """
        found = (self.pipeline.get_component(name) for name in self.pipeline.graph.nodes)
        for one in found:
            if isinstance(one, kind):
                return one
        msg = f"The pipeline has no {kind.__name__}: name one that has."
        raise ValueError(msg)

    async def run(self, values: Mapping[str, Any], *, token_budget: int | None = None) -> dict[str, Any]:
        """
        Run the pipeline.

        :param values: A value for each declared input.
        :param token_budget: Budget in tokens for every component that takes one, each its share of it; by default what
            the file says.
        :returns: A value for each declared output.
        """
        inputs: dict[str, dict[str, Any]] = {}
        for name, places in self._inputs.items():
            for component, socket in places:
                inputs.setdefault(component, {})[socket] = values[name]
        if token_budget is not None:
            for component, tokens in share_budget(self._budgets, token_budget).items():
                inputs.setdefault(component, {})["token_budget"] = tokens
        components = {component for ((component, _), *_) in self._outputs.values()}
        result = await self.pipeline.run_async(inputs, include_outputs_from=components)
        return {name: result[component][socket] for name, ((component, socket), *_) in self._outputs.items()}


def _places(data: Any, kind: str, path: str | Path) -> dict[str, list[tuple[str, str]]]:
    declared = data.get(kind) if isinstance(data, dict) else None
    if not isinstance(declared, dict):
        msg = f"The pipeline {path} declares no `{kind}`: see the end of pipelines/query.yml for how it is written."
        raise ValueError(msg)
    places = {}
    for name, targets in declared.items():
        parts = [str(target).partition(".") for target in ([targets] if isinstance(targets, str) else targets)]
        places[name] = [(component, socket) for component, _, socket in parts]
    return places
