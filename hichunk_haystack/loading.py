# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Loading pipelines that hold components of this package."""

from pathlib import Path
from typing import Any

from haystack import Pipeline

from hichunk_haystack.pipeline_files import pipeline_file

ALLOWED_MODULES = ["hichunk_haystack"]
"""What Haystack has to be told that it may import, for YAML that names components of this package."""


def load_pipeline(path: str | Path, **kwargs: Any) -> Pipeline:
    """
    Load a pipeline from a YAML file, or by the name of one that comes along, with this package's components allowed.

    Haystack imports only its own modules when it loads YAML; the same without this function is
    `Pipeline.load(file, allowed_modules=["hichunk_haystack"])`.

    :param path: Path of the YAML file, or the name of a pipeline that comes with the package, such as "query"; a file
        of that name goes first.
    :param kwargs: Further arguments of `Pipeline.loads`; `allowed_modules` adds to what is allowed.
    :returns: The pipeline.
    :raises FileNotFoundError: If there is no such file and no pipeline of that name; the message has the names.

    ```python
    from hichunk_haystack import load_pipeline

    pipeline = load_pipeline("query")    # or the path of a file of yours
    print(sorted(pipeline.graph.nodes))
    ```
    """
    allowed = [*ALLOWED_MODULES, *kwargs.pop("allowed_modules", [])]
    file = Path(path)
    if not file.exists() or file.is_dir():
        file = pipeline_file(str(path))
    return Pipeline.loads(file.read_text(encoding="utf-8"), allowed_modules=allowed, **kwargs)
