"""Triton's language under the name that the notebook uses, or None where there is no Triton."""

try:
    import triton.language as tl
except ImportError:
    tl = None

__all__ = ["tl"]
