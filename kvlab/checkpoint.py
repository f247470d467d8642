"""Reading the model file: GGUF version 3 with F32, F16, Q8_0 and Q4_1 tensors.

A GGUF file is a header (magic, version, counts), typed key-value metadata, one short record per tensor, and
then the aligned tensor data. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from kvlab.model_file import ModelNotFound, download_model, find_model, require_model

__all__ = [
    "GGUF",
    "GGUFError",
    "ModelNotFound",
    "TensorInfo",
    "download_model",
    "find_model",
    "require_model",
]

MAGIC = b"GGUF"
VERSION = 3
STRING, ARRAY = 8, 9
SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
MAX_DIMENSIONS = 4

# type number -> (name, values in a block, layout of a block); numbers and layouts as in ggml.h
TENSOR_TYPES = {
    0: ("F32", 1, np.dtype([("x", "<f4")])),
    1: ("F16", 1, np.dtype([("x", "<f2")])),
    3: ("Q4_1", 32, np.dtype([("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)])),
    8: ("Q8_0", 32, np.dtype([("d", "<f2"), ("q", "i1", 32)])),
}
# only to name a type in the error that refuses it
OTHER_TYPE_NAMES = {
    2: "Q4_0",
    6: "Q5_0",
    7: "Q5_1",
    9: "Q8_1",
    10: "Q2_K",
    11: "Q3_K",
    12: "Q4_K",
    13: "Q5_K",
}
OTHER_TYPE_NAMES |= {14: "Q6_K", 15: "Q8_K", 28: "F64", 30: "BF16"}


class GGUFError(ValueError):
    """The file is not a GGUF file that this reader understands; the message says why."""


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of the file: `shape` in row-major order, as torch has it (the file stores it reversed)."""

    name: str
    shape: tuple[int, ...]
    type_number: int
    start: int

    @property
    def type_name(self) -> str:
        if self.type_number in TENSOR_TYPES:
            return TENSOR_TYPES[self.type_number][0]
        return OTHER_TYPE_NAMES.get(self.type_number, f"number {self.type_number}")


class GGUF:
    """An open GGUF file, memory-mapped: `metadata` (dict), `tensors` (name -> TensorInfo), `load(name)`."""

    def __init__(
        self, path: Path, data: np.ndarray, metadata: dict[str, Any], tensors: dict[str, TensorInfo]
    ):
        self.path = path
        self.metadata = metadata
        self.tensors = tensors
        self._data = data  # uint8 [file size]

    @classmethod
    def open(cls, path: str | os.PathLike) -> GGUF:
        """Read the header. Errors: ModelNotFound; GGUFError for a foreign, truncated or garbled file."""
        path = Path(path)
        if not path.is_file():
            raise ModelNotFound(f"There is no model file at {path}: check the path.")
        if path.stat().st_size == 0:
            raise GGUFError(f"{path.name} is empty: download it again.")
        data = np.memmap(path, dtype=np.uint8, mode="r")
        try:
            metadata, tensors = _read_header(_Cursor(memoryview(data)))
        except GGUFError as error:
            raise GGUFError(f"{path.name}: {error}") from None
        return cls(path, data, metadata, tensors)

    def value(self, key: str) -> Any:
        """The metadata value for `key`. Raises GGUFError naming the key when the file has none."""
        if key not in self.metadata:
            raise GGUFError(
                f"{self.path.name}: the metadata has no key {key!r}: is this a Llama-family model?"
            )
        return self.metadata[key]

    def tensor_info(self, name: str) -> TensorInfo:
        """Shape and type of the tensor. Raises GGUFError naming it when the file has none of that name."""
        if name not in self.tensors:
            raise GGUFError(f"{self.path.name}: there is no tensor {name!r}: is this a Llama-family model?")
        return self.tensors[name]

    def load(self, name: str):
        """The tensor `name`, dequantised, as a float32 torch tensor of its own memory."""
        import torch

        info = self.tensor_info(name)
        if info.type_number not in TENSOR_TYPES:
            known = ", ".join(kind for kind, _, _ in TENSOR_TYPES.values())
            raise GGUFError(
                f"{self.path.name}: tensor {name!r} has type {info.type_name}, which this reader does not "
                f"know: use a file with only {known}."
            )
        type_name, block_length, layout = TENSOR_TYPES[info.type_number]
        if info.shape[-1] % block_length:
            raise GGUFError(
                f"{self.path.name}: tensor {name!r} has rows of {info.shape[-1]} values, which is no whole "
                f"number of {type_name} blocks of {block_length}."
            )
        count = prod(info.shape) // block_length
        end = info.start + count * layout.itemsize
        if end > len(self._data):
            raise GGUFError(
                f"{self.path.name}: tensor {name!r} ends at byte {end:,}, but "
                f"the file has {len(self._data):,}: it is truncated, download it again."
            )
        blocks = np.frombuffer(self._data, dtype=layout, count=count, offset=info.start)
        return torch.from_numpy(dequantize(type_name, blocks).reshape(info.shape))


def dequantize(type_name: str, blocks: np.ndarray) -> np.ndarray:
    """The float32 values [count, block length] of `count` blocks, given in the type's layout in TENSOR_TYPES.

    Q8_0: value = q * d. Q4_1: value = q * d + m; the low nibbles are values 0 to 15, the high ones 16 to 31.
    """
    if type_name in ("F32", "F16"):
        return blocks["x"].astype(np.float32)
    d = blocks["d"].astype(np.float32)[:, None]  # [count, 1]
    if type_name == "Q8_0":
        values = blocks["q"].astype(np.float32)  # [count, 32]
        values *= d
        return values
    values = np.empty((len(blocks), 32), dtype=np.float32)  # [count, 32]
    packed = blocks["q"]  # [count, 16]
    values[:, :16] = packed & 0x0F
    values[:, 16:] = packed >> 4
    values *= d
    values += blocks["m"].astype(np.float32)[:, None]
    return values


class _Cursor:
    """Reads forward through the header and refuses to pass the end of the file."""

    def __init__(self, data: memoryview):
        self.data = data
        self.at = 0

    def take(self, count: int) -> memoryview:
        if count > len(self.data) - self.at:
            raise GGUFError(
                f"the header asks for {count:,} bytes at byte {self.at:,}, but the file has "
                f"{len(self.data):,}: it is truncated or garbled, download it again."
            )
        self.at += count
        return self.data[self.at - count : self.at]

    def scalar(self, code: str):
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def string(self) -> str:
        try:
            return str(self.take(self.scalar("<Q")), "utf-8")
        except UnicodeDecodeError:
            raise GGUFError(f"the text before byte {self.at:,} is not UTF-8: the file is garbled.") from None

    def value(self, kind: int, may_nest: bool = True):
        if kind in SCALARS:
            return self.scalar(SCALARS[kind])
        if kind == STRING:
            return self.string()
        if kind != ARRAY or not may_nest:
            raise GGUFError(f"metadata type {kind} before byte {self.at:,} is unknown: the file is garbled.")
        kind, length = self.scalar("<I"), self.scalar("<Q")
        if kind in SCALARS:
            dtype = np.dtype(SCALARS[kind])
            return np.frombuffer(self.take(length * dtype.itemsize), dtype=dtype).tolist()
        # every string takes at least its 8-byte length, so this loop ends by running into the end of the file
        return [self.value(kind, may_nest=False) for _ in range(length)]


def _read_header(cursor: _Cursor) -> tuple[dict[str, Any], dict[str, TensorInfo]]:
    magic = bytes(cursor.take(4))
    if magic != MAGIC:
        raise GGUFError(f"it starts with {magic!r}, not {MAGIC!r}: this is not a GGUF file.")
    version = cursor.scalar("<I")
    if version != VERSION:
        raise GGUFError(
            f"it is GGUF version {version}; this reader knows version {VERSION}: use a newer file."
        )
    num_tensors, num_keys = cursor.scalar("<Q"), cursor.scalar("<Q")
    metadata: dict[str, Any] = {}
    for _ in range(num_keys):
        key = cursor.string()
        metadata[key] = cursor.value(cursor.scalar("<I"))
    records = [_read_tensor_record(cursor) for _ in range(num_tensors)]
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1:
        raise GGUFError(f"general.alignment is {alignment!r}: the file is garbled.")
    data_start = -(-cursor.at // alignment) * alignment
    tensors = {
        name: TensorInfo(name, shape, kind, data_start + offset) for name, shape, kind, offset in records
    }
    if len(tensors) != len(records):
        raise GGUFError("two tensors have the same name: the file is garbled.")
    return metadata, tensors


def _read_tensor_record(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int]:
    name = cursor.string()
    num_dimensions = cursor.scalar("<I")
    if not 1 <= num_dimensions <= MAX_DIMENSIONS:
        raise GGUFError(f"tensor {name!r} has {num_dimensions} dimensions: the file is garbled.")
    shape = tuple(cursor.scalar("<Q") for _ in range(num_dimensions))[::-1]
    if 0 in shape:
        raise GGUFError(f"tensor {name!r} has shape {shape}: the file is garbled.")
    return name, shape, cursor.scalar("<I"), cursor.scalar("<Q")
