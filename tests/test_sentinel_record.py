"""The record: every dtype holds it exactly, and no single changed lane leaves it whole."""

import numpy as np
import pytest
import torch

from kvlab.kv_checks import KV_DTYPES
from kvlab.sentinel_record import decode, encode


@pytest.mark.parametrize("dtype", KV_DTYPES)
@pytest.mark.parametrize("head_dim", [16, 24, 64])
def test_a_record_survives_every_dtype(dtype, head_dim):
    requests, positions = np.array([1, 2, 16**5 - 1]), np.array([0, 77777, 16**5 - 1])
    digits = encode(requests, positions, 200, 130, head_dim)  # [2, 3, 130, D]
    lanes = torch.from_numpy(digits).to(dtype).float().numpy()
    for kind in (0, 1):
        fields = decode(lanes[kind].reshape(-1, head_dim))
        assert fields["whole"].all() and not fields["empty"].any()
        assert set(fields["kind"]) == {kind + 1} and set(fields["layer"]) == {200}
        assert fields["head"].tolist() == list(range(130)) * 3
        assert fields["request"].tolist() == np.repeat(requests, 130).tolist()
        assert fields["position"].tolist() == np.repeat(positions, 130).tolist()


@pytest.mark.parametrize("head_dim", [16, 40])
@pytest.mark.parametrize("value", [-1, 0.5, 9, 15, 16, np.nan, np.inf])
def test_one_changed_lane_is_never_a_whole_record(value, head_dim):
    for lane in range(head_dim):
        lanes = encode(np.array([3]), np.array([70]), 1, 1, head_dim)[0, 0].astype(np.float64)  # [1, D]
        if lanes[0, lane] != value:
            lanes[0, lane] = value
            assert not decode(lanes)["whole"].any(), lane


def test_zeros_are_empty_and_no_record():
    fields = decode(np.zeros((2, 16)))
    assert fields["empty"].all() and not fields["whole"].any()


def test_halves_of_two_records_are_garbled():
    a, b = (encode(np.array([n]), np.array([p]), 0, 1, 32)[0, 0].astype(float) for n, p in ((1, 9), (2, 2)))
    assert not decode(np.concatenate([a[:, :16], b[:, 16:]], axis=1))["whole"].any()
