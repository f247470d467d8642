"""What a check of an engine's figures is about, and what it finds: the question, a finding, the report."""

from dataclasses import asdict, dataclass, replace

from kvlab.engine_log import EngineLog
from kvlab.layer_groups import Plan
from kvlab.sizing import ModelShape
from kvlab.units import dtype_bytes

AGREES, DIFFERS, UNCHECKED, NOTE = "agrees", "differs", "not checked", "note"


@dataclass(frozen=True)
class Finding:
    """One figure of the engine: its line (None: the line is missing), the verdict, and why in words."""

    line: int | None
    quote: str
    verdict: str
    says: str


@dataclass(frozen=True)
class Report:
    """All findings. `verdict`: "differs" if one does, else "agrees" if one does, else "not checked"."""

    findings: tuple[Finding, ...]
    settings: dict

    @property
    def verdict(self) -> str:
        found = {finding.verdict for finding in self.findings}
        return next((verdict for verdict in (DIFFERS, AGREES) if verdict in found), UNCHECKED)

    def as_dict(self) -> dict:
        """The report as plain data, for JSON."""
        findings = [asdict(finding) for finding in self.findings]
        return {"verdict": self.verdict, "settings": self.settings, "findings": findings}


@dataclass(frozen=True)
class Question:
    """A model and how the engine was set up.

    `available` is a size as it was written, such as "5.68 GiB"; `state_blocks` the states that a linear layer
    keeps for a request: 1, or 2 when the engine also caches prefixes (vLLM's mamba_cache_mode "align").
    """

    model: ModelShape
    block_size: int = 16
    kv_dtype: str | None = None
    in_flight: int = 2048
    tensor_parallel: int = 1
    state_blocks: int = 1
    max_model_len: int | None = None
    available: str | None = None
    weights: int | None = None

    def plan(self) -> Plan:
        """The pool's layout on ONE GPU."""
        return self.model.per_rank(self.tensor_parallel).plan(self.block_size, self.kv_dtype)

    def settings(self, version: str | None = None) -> dict:
        """What was assumed, for the reader of a report."""
        return {
            "model": self.model.name,
            "engine_version": version,
            "block_size": self.block_size,
            "kv_dtype": self.kv_dtype or self.model.dtype,
            "tensor_parallel": self.tensor_parallel,
            "in_flight": self.in_flight,
        }


def ask(log: EngineLog, model: ModelShape, **given) -> Question:
    """The question with what the caller gave, else what the text tells, else the defaults.

    A setting in the text that cannot be one (a block size of 0, an unknown dtype of the weights) is ignored.
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    for name, keys in (
        ("block_size", ("block_size",)),
        ("in_flight", ("max_num_batched_tokens",)),
        ("tensor_parallel", ("tensor_parallel_size",)),
        ("max_model_len", ("max_seq_len", "max_model_len")),
    ):
        told = log.setting(*keys)
        if told is not None and told.isascii() and told.isdigit() and int(told) > 0:
            chosen.setdefault(name, int(told))
    chosen.setdefault("tensor_parallel", log.tensor_ranks())
    if log.setting("mamba_cache_mode") == "align":
        chosen["state_blocks"] = 2
    engine_dtype = (log.setting("dtype") or "auto").removeprefix("torch.")
    if _is_dtype(engine_dtype):
        model = replace(model, dtype=engine_dtype)
    kv_dtype = chosen.get("kv_dtype") or log.setting("kv_cache_dtype") or "auto"
    chosen["kv_dtype"] = None if kv_dtype in ("auto", "None", "none") else kv_dtype.removeprefix("torch.")
    return Question(model, **chosen)


def _is_dtype(name: str) -> bool:
    try:
        return dtype_bytes(name) > 0
    except ValueError:
        return False
