# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

import asyncio
import codecs
import inspect
import os
from copy import deepcopy
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict, logging
from haystack.components.converters.utils import normalize_metadata
from haystack.core.serialization import component_from_dict, component_to_dict, import_class_by_name
from haystack.dataclasses import ByteStream
from tqdm.auto import tqdm

from hichunk_haystack.components.converters.conversion import check_file, reason_of, run_converter
from hichunk_haystack.components.converters.file_search import FileFinder, FoundFile
from hichunk_haystack.components.converters.formats import BUILT_IN, mime_type

logger = logging.getLogger(__name__)


@component
class FileConverter:
    """
    Turns files and folders into documents, each file with the Haystack converter for its type.

    | type | converter | what comes out |
    | --- | --- | --- |
    | Markdown, plain text | `TextFileToDocument` | the text as it is, every character and newline |
    | HTML | `HTMLToDocument` | the main content as Markdown, with its headings, lists, tables and code |
    | PDF | `PyPDFToDocument` | the text, pages divided by form feeds |
    | DOCX | `DOCXToDocument` | Markdown with headings, lists and tables; none of Word's own properties |

    HTML, PDF and DOCX need `pip install 'hichunk-haystack[files]'`. Text is read as UTF-8, or by its byte order mark.

    A file that can't be read or converted is named in `failed` with the reason, and the others come through. Files are
    read one at a time. `meta["file_path"]` of a document is the file's absolute path, or its path below `root`: the
    same however the file was named or found, so that a writer knows the source again.

    ```python
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from hichunk_haystack.components.converters import FileConverter

    with TemporaryDirectory() as folder:
        Path(folder, "kiln.md").write_text("# Kiln\\n\\nFire it slowly.\\n")
        Path(folder, "empty.md").write_text("")
        result = FileConverter(root=folder).run(paths=["."])
    print([document.meta["file_path"] for document in result["documents"]])  # ['kiln.md']
    print(result["failed"])  # [{'path': 'empty.md', 'error': 'The file is empty; fill it or leave it out.'}]
    ```
    """

    __module__ = "hichunk_haystack.components.converters"

    def __init__(
        self,
        converters: dict[str, Any] | None = None,
        *,
        root: str | None = None,
        fallback_encoding: str | None = None,
        progress_bar: bool = True,
    ) -> None:
        """
        Create the component.

        :param converters: Haystack converters by suffix (".rst") or MIME type ("text/html"), for more types or instead
            of the converters above; a suffix goes before a MIME type. They get the file's path in `sources`.
        :param root: Folder that all files must lie in (links inside of it are followed). Relative paths start here, and
            `file_path` is relative to it, with "/": then an index is the same wherever the folder is, and who may name
            paths, as over HTTP, can't reach others. By default relative paths start in the working directory, any file
            may be named, and `file_path` is absolute.
        :param fallback_encoding: Encoding of text files that are not UTF-8 and have no byte order mark, such as
            "cp1252". By default such files fail: a wrong guess would garble them without a word.
        :param progress_bar: Whether to show progress, in terminals.
        :raises ValueError: If a key of `converters` is neither a suffix nor a MIME type, or the encoding is unknown.
        :raises TypeError: If one of `converters` is no converter.
        """
        self.converters = converters
        self.root = root
        self.fallback_encoding = fallback_encoding
        self.progress_bar = progress_bar
        if fallback_encoding is not None:
            _check_encoding(fallback_encoding)
        self._own: dict[str, Any] = {}
        for key, converter in (converters or {}).items():
            _check_converter(key, converter)
            self._own[key.lower()] = converter
        self._built_in: dict[str, Any] = {}

    def warm_up(self) -> None:
        """Warm up the converters that were given."""
        for converter in self._own.values():
            if hasattr(converter, "warm_up"):
                converter.warm_up()

    @component.output_types(documents=list[Document], failed=list[dict[str, str]], skipped=list[str])
    def run(
        self, paths: list[str | Path] | str | Path, meta: dict[str, Any] | list[dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        """
        Convert files.

        :param paths: Files, folders (with all that is below them, without hidden files) and patterns (`docs/**/*.md`);
            a single path need not be in a list. A file that is reached twice is converted once.
        :param meta: Meta for all documents, or a list with a dictionary for each path.
        :returns: A dictionary with:
            - `documents`: the documents, in the order of the paths, those of a folder sorted by path.
            - `failed`: dictionaries of "path" and "error" (why, and what to do) for what could not be found, read or
              converted.
            - `skipped`: the files in folders, or matched by patterns, of types that are not converted.
        :raises ValueError: If `meta` is a list of another length than `paths`.
        """
        given = [paths] if isinstance(paths, str | PurePath) else list(paths)
        found = FileFinder(self.root, self._is_known).find(given, normalize_metadata(meta, len(given)))
        documents: list[Document] = []
        failed = found.failed
        # None: shown in a terminal only.
        for file in tqdm(found.files, "Converting files", unit="file", disable=None if self.progress_bar else True):
            try:
                documents += self._convert(file)
            except Exception as error:  # whatever a converter or a library raises: the other files must come through
                failed.append({"path": file.key, "error": reason_of(error, file.path)})
        for failure in failed:
            logger.warning("'{path}' is left out. {error}", path=failure["path"], error=failure["error"])
        return {"documents": documents, "failed": failed, "skipped": found.skipped}

    @component.output_types(documents=list[Document], failed=list[dict[str, str]], skipped=list[str])
    async def run_async(
        self, paths: list[str | Path] | str | Path, meta: dict[str, Any] | list[dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        """
        Convert files in a thread, without blocking the event loop.

        :param paths: Files, folders and patterns.
        :param meta: Meta for all documents, or a list with a dictionary for each path.
        :returns: What `run` returns.
        :raises ValueError: If `meta` is a list of another length than `paths`.
        """
        return await asyncio.to_thread(self.run, paths, meta)

    def _is_known(self, path: str) -> bool:
        return self._own_converter(path) is not None or mime_type(path) in BUILT_IN

    def _own_converter(self, path: str) -> Any:
        """Give the converter that the caller set for this type."""
        own = self._own.get(os.path.splitext(path)[1].lower())
        return own if own is not None else self._own.get(mime_type(path) or "")

    def _convert(self, file: FoundFile) -> list[Document]:
        check_file(file.path)
        own = self._own_converter(file.path)
        documents = run_converter(own, file.path) if own is not None else self._convert_built_in(file)
        # Without their ids, since these are hashes of content and meta.
        return [
            replace(document, id="", meta={**document.meta, **deepcopy(file.meta), "file_path": file.key})
            for document in documents
        ]

    def _convert_built_in(self, file: FoundFile) -> list[Document]:
        kind = mime_type(file.path) or ""
        chosen = BUILT_IN[kind]
        if kind not in self._built_in:
            self._built_in[kind] = chosen.make()
        data, meta = chosen.prepare(Path(file.path).read_bytes(), self.fallback_encoding)
        documents = run_converter(self._built_in[kind], ByteStream(data, meta=dict(meta), mime_type=kind))
        # What Word keeps about a document (its revision, when it was printed) would be copied to every node.
        return [replace(each, content=chosen.finish(each.content or ""), meta=meta) for each in documents]

    def to_dict(self) -> dict[str, Any]:
        """
        Serialise the component.

        :returns: Dictionary with the type and the init parameters.
        """
        converters = self.converters and {
            # Tuples have no form in YAML that safe loaders read.
            key: _without_tuples(component_to_dict(converter, key))
            for key, converter in self.converters.items()
        }
        return default_to_dict(
            self,
            converters=converters,
            root=self.root,
            fallback_encoding=self.fallback_encoding,
            progress_bar=self.progress_bar,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "FileConverter":
        """
        Revive the component.

        :param data: What `to_dict` gave.
        :returns: The component.
        """
        parameters = dict(data.get("init_parameters", {}))
        if parameters.get("converters"):
            parameters["converters"] = {
                key: component_from_dict(import_class_by_name(converter["type"]), converter, key)
                for key, converter in parameters["converters"].items()
            }
        return default_from_dict(cls, {**data, "init_parameters": parameters})


def _check_encoding(name: str) -> None:
    try:
        codecs.lookup(name)
    except LookupError as error:
        msg = f"fallback_encoding is '{name}', which Python does not know; 'cp1252' is usual in Western Europe."
        raise ValueError(msg) from error


def _check_converter(key: str, converter: Any) -> None:
    if not key.startswith(".") and "/" not in key:
        msg = f"'{key}' in converters is neither a suffix such as '.rst' nor a MIME type such as 'text/html'."
        raise ValueError(msg)
    takes = inspect.signature(converter.run).parameters if hasattr(converter, "run") else {}
    if "sources" not in takes and not any(each.kind is each.VAR_KEYWORD for each in takes.values()):
        msg = f"converters['{key}'] is a {type(converter).__name__}; it must be a Haystack converter (taking sources)."
        raise TypeError(msg)


def _without_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_tuples(each) for key, each in value.items()}
    return [_without_tuples(each) for each in value] if isinstance(value, list | tuple) else value
