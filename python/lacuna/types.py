# SPDX-License-Identifier: Apache-2.0
"""Names of types, for annotations and those who check them."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Union

if TYPE_CHECKING:
    from .model import Model

Array = Any  # what has the buffer protocol, __array__ or __dlpack__
Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, "Model", Any]  # or an onnx.ModelProto
Batch = Union[Array, Mapping[str, Array], "tuple[Array, ...]"]
Data = Union[str, "os.PathLike[str]", Batch, Iterable[Batch]]
Progress = Union[bool, Callable[[str, int, int], Any]]
