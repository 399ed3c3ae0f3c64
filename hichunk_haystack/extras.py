# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""How an optional part of the package is installed, for messages."""


def pip_install(*extras: str) -> str:
    """
    Say how to install extras.

    :param extras: Their names, such as "files".
    :returns: The commands, without a full stop.
    """
    names = ",".join(extras)
    return f"pip install 'hichunk-haystack[{names}]' (in a clone of the repository: pip install '.[{names}]')"
