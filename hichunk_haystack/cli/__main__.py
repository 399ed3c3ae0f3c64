# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""`python -m hichunk_haystack.cli` is `hichunk`."""

from hichunk_haystack.cli import main

if __name__ == "__main__":
    main()
