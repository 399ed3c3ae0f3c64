# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Finding the YAML pipelines that come with the package, in a wheel as in a checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def pipeline_folder() -> Path:
    """
    Find the folder with the YAML pipelines.

    :returns: `pipelines` inside the package, where a wheel puts them, else beside it, where the repository has them.
    """
    inside = _PACKAGE / "pipelines"
    return inside if inside.is_dir() else _PACKAGE.parent / "pipelines"


def pipeline_file(name: str) -> Path:
    """
    Find one of the YAML pipelines.

    ```python
    from hichunk_haystack import load_pipeline
    from hichunk_haystack.pipeline_files import pipeline_file

    query = load_pipeline(pipeline_file("query"))
    ```

    :param name: Its name, such as "indexing" or "query_hybrid.yml".
    :returns: Path of the file.
    :raises FileNotFoundError: If there is none of that name; the message has the names.
    """
    folder = pipeline_folder()
    names = sorted(path.stem for path in folder.glob("*.yml"))
    stem = name.removesuffix(".yml")
    if stem not in names:
        msg = (
            f"There is no pipeline '{name}': name a YAML file, or one of those that come along "
            f"({', '.join(names) or 'which are missing'})."
        )
        raise FileNotFoundError(msg)
    return folder / f"{stem}.yml"
