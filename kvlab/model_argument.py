"""The arguments that say which model: shared by the commands that size one."""

import argparse
from typing import NamedTuple

from kvlab.checkpoint_size import read_checkpoint
from kvlab.model_shapes import MODELS, named_shape
from kvlab.sizing import ModelShape
from kvlab.units import dtype_bytes, parse_count


class ChosenModel(NamedTuple):
    """The model that the arguments name; the weights' bytes when a checkpoint tells them."""

    shape: ModelShape
    weight_bytes: int | None


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--config", metavar="FILE", help="a Hugging Face config.json")
    which.add_argument("--model", metavar="DIR", help="a local checkpoint: safetensors folder or GGUF file")
    which.add_argument("--known", metavar="NAME", help=f"a well-known model: {', '.join(MODELS)}")
    parser.add_argument(
        "--kv-dtype", default=None, metavar="NAME", help="float16, bfloat16, fp8, ... (default: auto)"
    )
    parser.add_argument(
        "--block-size", default=None, metavar="TOKENS", help="tokens in a block (default: 16)"
    )
    parser.add_argument("--tensor-parallel", default=None, metavar="GPUS", help="GPUs that share the heads")
    parser.add_argument(
        "--in-flight", default=None, metavar="TOKENS", help="tokens in one step (default: 2048)"
    )


def chosen_model(args: argparse.Namespace) -> ChosenModel:
    """Read the model that the arguments name. Raises ValueError or KeyError with a sentence."""
    if args.config is not None:
        return ChosenModel(ModelShape.from_config(args.config), None)
    if args.known is not None:
        return ChosenModel(named_shape(args.known), None)
    checkpoint = read_checkpoint(args.model)
    return ChosenModel(checkpoint.shape, checkpoint.weight_bytes)


def count_or_none(value: str | None, name: str) -> int | None:
    return None if value is None else parse_count(value, name)


def kv_dtype_or_none(value: str | None) -> str | None:
    """A KV dtype that is known, or None for the model's own."""
    if value is None or value == "auto":
        return None
    dtype_bytes(value)
    return value


def sentence(error: Exception) -> str:
    """An error's message; KeyError would show its quotes."""
    return str(error.args[0]) if error.args and isinstance(error, KeyError) else str(error)
