"""The shape and the weights' bytes of a checkpoint on disk, from its headers."""

import json
import struct

import pytest

from kvlab.checkpoint_size import CheckpointError, read_checkpoint, safetensors_bytes

CONFIG = {
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_size": 64,
    "torch_dtype": "float16",
}


def safetensors(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(start: int, end: int) -> dict:
    return {"dtype": "F16", "shape": [(end - start) // 2], "data_offsets": [start, end]}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def test_weights_from_the_headers(folder):
    first = {"__metadata__": {"format": "pt"}, "a": tensor(0, 10), "b": tensor(10, 30)}
    (folder / "model-00001-of-00002.safetensors").write_bytes(safetensors(first, bytes(30)))
    (folder / "model-00002-of-00002.safetensors").write_bytes(safetensors({"c": tensor(0, 12)}, bytes(12)))
    checkpoint = read_checkpoint(folder)
    assert checkpoint.weight_bytes == 42
    assert "2 safetensors" in checkpoint.source
    assert checkpoint.shape.kv_bytes_per_token() == 2 * 2 * 2 * 16 * 2


def test_weights_from_the_index(folder):
    (folder / "model.safetensors.index.json").write_text('{"metadata": {"total_size": 15231233024}}')
    assert read_checkpoint(str(folder)).weight_bytes == 15_231_233_024


def test_an_index_without_a_total_falls_back_to_the_headers(folder):
    (folder / "model.safetensors").write_bytes(safetensors({"a": tensor(0, 4)}, bytes(4)))
    for content in ("{}", '{"metadata": 3}', '{"metadata": {"total_size": "9"}}'):
        (folder / "model.safetensors.index.json").write_text(content)
        assert safetensors_bytes(folder)[0] == 4


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a safetensors file"),
        (b"GGUF", "not a safetensors file"),
        (safetensors({}, length=1 << 60), "not a safetensors file"),
        (safetensors(b"{{"), "is not JSON"),
        (safetensors(b"[1]"), "must hold an object"),
        (safetensors({"a": {"dtype": "F16"}}), "no data_offsets"),
        (safetensors({"a": {"data_offsets": [0, "4"]}}), "no data_offsets"),
        (safetensors({"a": tensor(0, 100)}, bytes(10)), "is truncated: its header tells of 100 B"),
    ],
)
def test_broken_safetensors(folder, content, says):
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=says):
        read_checkpoint(folder)


def test_folders_that_are_no_checkpoint(tmp_path, folder):
    with pytest.raises(CheckpointError, match="no safetensors files: give --weights"):
        read_checkpoint(folder)
    with pytest.raises(CheckpointError, match="There is no folder"):
        read_checkpoint(tmp_path / "none")
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"no config.json and 0 GGUF"):
        read_checkpoint(folder)
    with pytest.raises((CheckpointError, OSError), match=r"There is no model file|cannot be read"):
        read_checkpoint(tmp_path / "none.gguf")


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(metadata: dict, data: int = 64) -> bytes:
    """A GGUF file with one F32 tensor of `data` bytes."""
    out = b"GGUF" + struct.pack("<IQQ", 3, 1, len(metadata))
    for key, value in metadata.items():
        if isinstance(value, str):
            out += _text(key) + struct.pack("<I", 8) + _text(value)
        elif isinstance(value, list):
            out += _text(key) + struct.pack("<IIQ", 9, 4, len(value)) + struct.pack(f"<{len(value)}I", *value)
        else:
            out += _text(key) + struct.pack("<II", 4, value)
    out += _text("t") + struct.pack("<IQIQ", 1, data // 4, 0, 0)
    return out + bytes(-len(out) % 32) + bytes(data)


LLAMA = {
    "general.architecture": "llama",
    "general.name": "tiny",
    "llama.block_count": 3,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.embedding_length": 64,
    "llama.context_length": 512,
}


def test_a_gguf_file(tmp_path):
    file = tmp_path / "tiny.gguf"
    file.write_bytes(gguf(LLAMA))
    for place in (file, tmp_path):
        checkpoint = read_checkpoint(place)
        assert checkpoint.shape.kv_bytes_per_token() == 3 * 2 * 32 * 2
        assert (checkpoint.shape.name, checkpoint.shape.max_model_len) == ("tiny", 512)
        assert checkpoint.weight_bytes == 64


def test_gguf_head_sizes_of_their_own(tmp_path):
    file = tmp_path / "tiny.gguf"
    extra = {"llama.attention.key_length": 24, "llama.attention.value_length": 8}
    file.write_bytes(gguf({**LLAMA, **extra, "llama.attention.head_count_kv": [2, 2, 2]}))
    assert read_checkpoint(file).shape.kv_bytes_per_token("fp8") == 3 * 2 * 32
    file.write_bytes(gguf({**LLAMA, "llama.attention.head_count_kv": [2, 1, 2]}))
    with pytest.raises(CheckpointError, match="head_count_kv must be a whole number"):
        read_checkpoint(file)
    file.write_bytes(gguf({key: value for key, value in LLAMA.items() if "block_count" not in key}))
    with pytest.raises(CheckpointError, match="block_count"):
        read_checkpoint(file)


def test_smollm2(model_path):
    checkpoint = read_checkpoint(model_path)
    assert checkpoint.shape.kv_bytes_per_token() == 23_040
    assert checkpoint.shape.num_layers == 30 and checkpoint.shape.max_model_len == 8192
    assert 0.95 * model_path.stat().st_size < checkpoint.weight_bytes < model_path.stat().st_size
