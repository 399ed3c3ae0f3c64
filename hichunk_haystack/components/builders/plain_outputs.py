# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import math
from dataclasses import asdict, is_dataclass
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict


@component
class PlainOutputs:
    """
    Gathers what a pipeline answers, as plain data that JSON can say.

    The last component of a pipeline that is served: whatever serves it sends the outputs named here and nothing else,
    and documents among them arrive as dictionaries. hayhooks otherwise sends all outputs of a component as soon as one
    of them is named, and over MCP it fails at documents.

    Documents come without their embeddings. Numbers that JSON does not know (NaN, infinities) become `None`.

    ```python
    from haystack import Document

    from hichunk_haystack.components.builders import PlainOutputs

    answer = PlainOutputs(["documents", "used"]).run(documents=[Document(content="Fire the kiln.", id="1")], used=4)
    print(answer)  # {'documents': [{'id': '1', 'content': 'Fire the kiln.', 'meta': {}, 'score': None}], 'used': 4}
    ```
    """

    __module__ = "hichunk_haystack.components.builders"

    def __init__(self, names: list[str]) -> None:
        """
        Create the component.

        :param names: Names of its inputs, which are also those of its outputs.
        :raises ValueError: If there is no name, or one is given twice.
        """
        if not names or len(set(names)) < len(names):
            msg = f"names is {names}; it must hold at least one name, and each once."
            raise ValueError(msg)
        self.names = names
        component.set_input_types(self, **dict.fromkeys(names, Any))
        component.set_output_types(self, **dict.fromkeys(names, Any))

    def run(self, **outputs: Any) -> dict[str, Any]:
        """
        Turn outputs into plain data.

        :param outputs: A value for each name.
        :returns: The same names with dictionaries, lists, strings, numbers, booleans and `None`.
        """
        return {name: plain(value) for name, value in outputs.items()}

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        return default_to_dict(self, names=self.names)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "PlainOutputs":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        return default_from_dict(cls, data)


def plain(value: Any) -> Any:
    """
    Turn a value into what JSON can say.

    :param value: Anything; documents, dataclasses and NumPy's numbers among others.
    :returns: Dictionaries, lists, strings, numbers, booleans and `None`.
    """
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else plain(_taken_apart(value))


def _taken_apart(value: Any) -> Any:
    """One step towards plain data."""
    if isinstance(value, Document):
        return {"id": value.id, "content": value.content, "meta": value.meta, "score": value.score}
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return value.tolist()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)
