# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest

from hichunk_haystack.components.converters import FileConverter


@pytest.fixture
def converter(tmp_path: Path) -> FileConverter:
    return FileConverter(root=str(tmp_path))
