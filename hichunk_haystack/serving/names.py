# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Names of uploaded files, made safe: a name in one folder, never a path, on every file system."""

import unicodedata

_MOST_BYTES = 200
# What Windows takes in no name, and the separators of every system.
_FORBIDDEN = frozenset('<>:"|?*/\\')
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$", *(f"{kind}{n}" for kind in ("com", "lpt") for n in range(10))}
)
# Control characters, lone surrogates, private and unassigned characters, line and paragraph separators.
_UNPRINTABLE = frozenset({"Cc", "Cs", "Co", "Cn", "Zl", "Zp"})
# Of the invisible characters (Cf) those that letters need: joiners of Persian, of Indic scripts and of emoji.
_JOINERS = "\u200c\u200d"


def safe_name(given: str | None) -> str | None:
    """
    Make a file name of what a client calls its file.

    Only what stands behind the last separator counts (of Unix or Windows); no name is hidden, reserved, or longer than
    200 bytes, and none holds what some file system refuses or what is shown as something else (control characters,
    marks that turn the direction of writing). Letters of all scripts stay, in their composed form (NFC). A safe name
    stays as it is.

    ```python
    from hichunk_haystack.serving import safe_name

    print(safe_name("../../etc/passwd"), safe_name("C:\\\\kiln\\\\plan?.md"), safe_name(".."))  # passwd plan_.md None
    ```

    :param given: The client's name; anything.
    :returns: The name, or `None` where nothing is left of it.
    """
    last = (given or "").replace("\\", "/").rpartition("/")[2]
    # Composing can make new characters, so the rest looks at the result.
    composed = unicodedata.normalize("NFC", last)
    name = "".join("_" if character in _FORBIDDEN else character for character in composed if _is_shown(character))
    name = _cut(name.strip(". ").strip())
    stem = name.partition(".")[0].rstrip().casefold()
    if stem in _DEVICES:
        name = f"_{name}"
    return name if name.strip("_. ") else None


def _is_shown(character: str) -> bool:
    category = unicodedata.category(character)
    return category not in _UNPRINTABLE and (category != "Cf" or character in _JOINERS)


def _cut(name: str) -> str:
    """Shorten a name in front of its suffix, at whole characters."""
    if len(name.encode()) <= _MOST_BYTES:
        return name
    stem, dot, suffix = name.rpartition(".")
    if not stem or len(suffix.encode()) > _MOST_BYTES // 4:
        stem, dot, suffix = name, "", ""
    room = _MOST_BYTES - len(f"{dot}{suffix}".encode())
    return stem.encode()[:room].decode(errors="ignore").rstrip(" .") + dot + suffix
