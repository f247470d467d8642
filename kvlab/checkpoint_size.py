"""The shape and the size of a local checkpoint, from its headers alone: no tensor is loaded."""

import json
import struct
from pathlib import Path
from typing import NamedTuple

from kvlab.layer_kinds import Layer
from kvlab.sizing import ModelShape

_MAX_HEADER = 100 * 1024 * 1024
_INDEX = "model.safetensors.index.json"


class CheckpointError(ValueError):
    """A checkpoint whose shape or size cannot be told, with the reason."""


class Checkpoint(NamedTuple):
    """A model on disk: its shape, the bytes of its tensors, and where that figure comes from."""

    shape: ModelShape
    weight_bytes: int
    source: str


def read_checkpoint(place: str | Path) -> Checkpoint:
    """A folder with config.json and safetensors, a folder with one GGUF file, or a GGUF file.

    Raises CheckpointError (a ValueError) that says what was looked for.
    """
    path = Path(place)
    if path.suffix == ".gguf":
        return _read_gguf(path)
    if not path.is_dir():
        raise CheckpointError(f"There is no folder {path}. Give a model's folder or a GGUF file.")
    if (path / "config.json").is_file():
        shape = ModelShape.from_config(path)
        return Checkpoint(shape, *safetensors_bytes(path))
    files = sorted(path.glob("*.gguf"))
    if len(files) != 1:
        raise CheckpointError(
            f"{path} has no config.json and {len(files)} GGUF files; one of either is needed."
        )
    return _read_gguf(files[0])


def safetensors_bytes(folder: Path) -> tuple[int, str]:
    """(bytes of all tensors, where the figure is from): the index's total_size, or the sum over the headers.

    Format: 8 bytes with the header's length (little-endian), then JSON whose data_offsets say where each
    tensor lies. Source: https://github.com/huggingface/safetensors, "Format".
    """
    index = folder / _INDEX
    if index.is_file():
        total = _json_object(index.read_bytes(), index.name).get("metadata", {})
        total = total.get("total_size") if isinstance(total, dict) else None
        if isinstance(total, int) and not isinstance(total, bool) and total > 0:
            return total, _INDEX
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise CheckpointError(f"{folder} has no safetensors files: give --weights instead.")
    return sum(_tensor_bytes(file) for file in files), f"headers of {len(files)} safetensors file(s)"


def _json_object(content: bytes, name: str) -> dict:
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{name} is not JSON ({error}): download it again.") from None
    if not isinstance(values, dict):
        raise CheckpointError(f"{name} must hold an object {{...}}, not a {type(values).__name__}.")
    return values


def _tensor_bytes(path: Path) -> int:
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= min(_MAX_HEADER, path.stat().st_size - 8):
            raise CheckpointError(
                f"{path.name} is not a safetensors file, or is truncated: download it again."
            )
        header = _json_object(file.read(length), path.name)
    ends = [0]
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        offsets = tensor.get("data_offsets") if isinstance(tensor, dict) else None
        if not (isinstance(offsets, list) and len(offsets) == 2 and all(type(o) is int for o in offsets)):
            raise CheckpointError(f"{path.name}: tensor {name[:60]!r} has no data_offsets of two numbers.")
        ends.append(offsets[1])
    if max(ends) > path.stat().st_size - 8 - length:
        raise CheckpointError(f"{path.name} is truncated: its header tells of {max(ends):,} B of tensors.")
    return max(ends)


def _read_gguf(path: Path) -> Checkpoint:
    """The shape in a GGUF's metadata. Its KV cache is taken as float16, llama.cpp's default."""
    from kvlab.checkpoint import GGUF  # numpy, which the rest of this module does without

    try:
        gguf = GGUF.open(path)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}.") from None
    arch = str(gguf.metadata.get("general.architecture", "llama"))

    def number(key: str, default: int | None = None) -> int:
        value = gguf.metadata.get(f"{arch}.{key}", default)
        if isinstance(value, list) and value and len(set(value)) == 1:
            value = value[0]
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise CheckpointError(
                f"{path.name}: {arch}.{key} must be a whole number of at least 1, not {value!r}."
            )
        return value

    heads = number("attention.head_count")
    head_size = number("attention.key_length", max(1, number("embedding_length") // heads))
    layer = Layer(
        kind="full",
        num_kv_heads=number("attention.head_count_kv", heads),
        head_size=head_size,
        head_size_v=number("attention.value_length", head_size),
    )
    shape = ModelShape(
        layers=(layer,) * number("block_count"),
        dtype="float16",
        name=str(gguf.metadata.get("general.name", path.stem)),
        num_query_heads=heads,
        max_model_len=number("context_length"),
    )
    first = min((info.start for info in gguf.tensors.values()), default=path.stat().st_size)
    return Checkpoint(shape, path.stat().st_size - first, "the GGUF file's data section")
