"""What a subject is, in words that tell two of them apart."""

from __future__ import annotations

import functools
import hashlib
import json
from types import CodeType
from typing import Any

import numpy as np

from undertow import _version

__all__ = ["code_words", "subject_identity"]


def subject_identity(subject: Any) -> str:
    """Return what the runs of a subject depend on, as far as it can be told.

    Name and version, every input, the words of a command, the code of a function, and
    the version of this package: a checkpoint of one of them is no other's. Values that
    a function takes from outside of it are not seen; `version` is there to tell them.

    Examples
    --------
    >>> from undertow.audit.subjects import ProtocolSubject
    >>> from undertow.mechanisms.local import GeneralizedResponse
    >>> one, two = (ProtocolSubject(GeneralizedResponse(3, e)) for e in (1, 2))
    >>> subject_identity(one) == subject_identity(two)
    False
    """
    parts = [
        _version.__version__,
        str(getattr(subject, "name", type(subject).__name__)),
        str(getattr(subject, "version", "")),
        [_told(value) for value in getattr(subject, "inputs", ())],
        [*getattr(subject, "command", ()), *getattr(subject, "stated_batch", ())],
        code_words(getattr(subject, "function", None)),
    ]
    return json.dumps(parts)


def _told(value: Any) -> str:
    if not isinstance(value, np.ndarray) or value.dtype.hasobject:
        return repr(value)
    held = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return f"{value.dtype.str} {value.shape} {held}"


def code_words(function: Any) -> list[str]:
    """Return where a function comes from and what it does; nothing for other things."""
    if isinstance(function, functools.partial):
        fixed = [*function.args, *sorted(function.keywords.items())]
        return [*code_words(function.func), *map(repr, fixed)]
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return []
    inner = [item for item in code.co_consts if isinstance(item, CodeType)]
    plain = [repr(c) for c in code.co_consts if not isinstance(c, CodeType | frozenset)]
    words = [str(getattr(function, "__module__", "")), code.co_qualname]
    bytecode = [hashlib.sha256(item.co_code).hexdigest() for item in (code, *inner)]
    return [*words, *bytecode, *plain, *code.co_names]
