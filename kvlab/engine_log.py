"""Reading the sizes out of a vLLM start-up log: which line says what, whatever stands around it.

Only the engine's public output is read. Lines may carry time stamps, process names, colour codes or a
container's prefix; several ranks may each print their own. A line that is not known is passed over.
"""

import re
from dataclasses import dataclass, field

from kvlab.units import parse_bytes

MAX_LINE = 20_000
_COLOUR = re.compile(r"\x1b(?:\[[0-9;?]{0,40}[ -/]?[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\))")
_COUNT = r"((?:[0-9]{1,3}(?:[,_' \u00a0\u202f][0-9]{3}){1,4}|[0-9]{1,15})(?![0-9.]))"
_AMOUNT = r"([0-9]{1,12}(?:\.[0-9]{1,9})?\s{0,3}[KMGT]i?B)\b"
_LINES = {
    "available": re.compile(rf"Available KV cache memory:\s{{0,3}}{_AMOUNT}"),
    "tokens": re.compile(rf"GPU KV cache size:\s{{0,3}}{_COUNT}\s{{0,3}}tokens"),
    "concurrency": re.compile(
        rf"Maximum concurrency for\s{{1,3}}{_COUNT}\s{{0,3}}tokens per request:"
        r"\s{0,3}([0-9]{1,9}\.[0-9]{1,6})x"
    ),
    "checkpoint": re.compile(rf"[Cc]heckpoint size:\s{{0,3}}{_AMOUNT}"),
    "loaded": re.compile(rf"Model loading took:?\s{{1,3}}{_AMOUNT}"),
    "raised": re.compile(rf"Setting attention block size to\s{{1,3}}{_COUNT}\s{{0,3}}tokens"),
    "blocks": re.compile(rf"GPU blocks:\s{{0,3}}{_COUNT}"),
}
LOOKED_FOR = {
    "available": "Available KV cache memory: 5.68 GiB",
    "tokens": "GPU KV cache size: 106,432 tokens",
    "concurrency": "Maximum concurrency for 8,192 tokens per request: 12.99x",
    "checkpoint": "Checkpoint size: 14.19 GiB",
}
_SETTINGS = {
    "block_size": r"[0-9]{1,6}",
    "tensor_parallel_size": r"[0-9]{1,5}",
    "max_num_batched_tokens": r"[0-9]{1,9}",
    "max_seq_len": r"[0-9]{1,12}",
    "max_model_len": r"[0-9]{1,12}",
    "gpu_memory_utilization": r"[0-9]{1,2}(?:\.[0-9]{1,6})?",
    "kv_cache_dtype": r"[A-Za-z0-9_.]{1,30}",
    "mamba_cache_mode": r"[a-z]{1,10}",
    "dtype": r"(?:torch\.)?[A-Za-z][A-Za-z0-9_]{0,29}",
}
_SETTING = {
    key: re.compile(
        rf"(?<![A-Za-z0-9_-])['\"]?{key}['\"]?\s{{0,2}}[=:]\s{{0,2}}['\"]?({value})(?![A-Za-z0-9.])"
    )
    for key, value in _SETTINGS.items()
}
_VERSION = re.compile(
    r"(?:engine \(v|vLLM (?:API server )?version v?)([0-9]{1,3}\.[0-9]{1,4}[0-9A-Za-z.+]{0,30})"
)
_RANK = re.compile(r"\(([A-Za-z][A-Za-z0-9_ ]{0,40}?)\s{0,3}pid=[0-9]{1,10}[^)]{0,60}\)")


@dataclass(frozen=True)
class LogLine:
    """One line that says a size. `values`: whole numbers as int, sizes and factors as written."""

    number: int
    kind: str
    values: tuple
    text: str
    rank: str | None = None


@dataclass(frozen=True)
class EngineLog:
    """The sizes and the settings that a log tells."""

    lines: tuple[LogLine, ...]
    settings: dict[str, str] = field(default_factory=dict)
    version: str | None = None

    def of(self, kind: str) -> list[LogLine]:
        return [line for line in self.lines if line.kind == kind]

    def tensor_ranks(self) -> int:
        """GPUs that share heads, by the workers' names: 1 + the highest n in Worker_TPn; 1 without any."""
        named = [re.search(r"TP([0-9]{1,4})(?![0-9])", line.rank or "") for line in self.lines]
        return 1 + max((int(match.group(1)) for match in named if match), default=0)

    def setting(self, *names: str) -> str | None:
        """The first of these settings that the log tells, or None."""
        return next((self.settings[name] for name in names if name in self.settings), None)


def clean(line: str) -> str:
    """A line without colour codes and control characters."""
    plain = _COLOUR.sub("", line[:MAX_LINE])
    return "".join(c if c.isprintable() or c in "\u00a0\u202f" else " " for c in plain).strip()


def read_log(text: str) -> EngineLog:
    """Every known line of the text, in order. Never fails: foreign text gives an empty EngineLog."""
    lines: list[LogLine] = []
    settings: dict[str, str] = {}
    version = None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = clean(raw)
        rank = _RANK.search(line)
        for kind, pattern in _LINES.items():
            if match := pattern.search(line):
                values = tuple(_value(kind, group) for group in match.groups())
                lines.append(LogLine(number, kind, values, line[:300], rank and rank.group(1).strip()))
        for key, pattern in _SETTING.items():
            if match := pattern.search(line):
                settings.setdefault(key, match.group(1))
        if version is None and (match := _VERSION.search(line)):
            version = match.group(1).rstrip(".")
    return EngineLog(tuple(lines), settings, version)


def _value(kind: str, shown: str):
    """A count as int; a size or a factor stays as it was written, because its decimals matter."""
    digits = re.sub(r"[^0-9.]", "", shown)
    return shown if kind in ("available", "checkpoint", "loaded") or "." in digits else int(digits)


def smallest_budget(log: EngineLog) -> LogLine | None:
    """The line with the least available memory: all ranks take as many blocks as the poorest one has."""
    return min(log.of("available"), key=lambda line: parse_bytes(line.values[0]), default=None)
