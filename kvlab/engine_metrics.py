"""Reading an engine's metrics page (Prometheus text): how many blocks there are, and how full they are."""

import re
from dataclasses import dataclass, field

from kvlab.engine_findings import AGREES, DIFFERS, NOTE, UNCHECKED, Finding, Question
from kvlab.engine_log import EngineLog, clean
from kvlab.units import bytes_behind, format_bytes

_SAMPLE = re.compile(
    r"(vllm:[a-z_]{1,80})(?:\{((?:[^\"{}\\]|\"(?:[^\"\\]|\\.)*\")*)\})?\s{1,8}"
    r"([+-]?[0-9]{1,20}(?:\.[0-9]{0,20})?(?:[eE][+-]?[0-9]{1,3})?|NaN|[+-]?Inf)(?:\s{1,8}-?[0-9]{1,20})?"
)
_LABEL = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,60})=\"((?:[^\"\\]|\\.)*)\"")
_INFO = "vllm:cache_config_info"
GAUGES = {
    "usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "queries": ("vllm:prefix_cache_queries_total", "vllm:prefix_cache_queries"),
    "hits": ("vllm:prefix_cache_hits_total", "vllm:prefix_cache_hits"),
    "preemptions": ("vllm:num_preemptions_total", "vllm:num_preemptions"),
    "running": ("vllm:num_requests_running",),
    "waiting": ("vllm:num_requests_waiting",),
}


@dataclass(frozen=True)
class MetricsPage:
    """The figures of a page. `info_lines`: (line number, labels) of each cache_config_info, one per engine.

    `values`: name in GAUGES -> list of (line number, labels, value), one per engine.
    """

    info_lines: tuple[tuple[int, dict[str, str]], ...]
    values: dict[str, list[tuple[int, dict[str, str], float]]] = field(default_factory=dict)

    def as_settings(self) -> EngineLog:
        """The block size and the cache dtype, as a log would tell them."""
        told = {"block_size": "block_size", "cache_dtype": "kv_cache_dtype"}
        settings = {
            name: labels[label]
            for _, labels in reversed(self.info_lines)
            for label, name in told.items()
            if labels.get(label)
        }
        return EngineLog((), settings)


def is_metrics_page(text: str) -> bool:
    """True when a line of the text is a sample of the cache's configuration or of a known gauge."""
    names = tuple(name for choices in GAUGES.values() for name in choices)
    return any(line.lstrip().startswith((_INFO, *names)) for line in text.splitlines())


def read_metrics(text: str) -> MetricsPage:
    """The known samples of a page. Lines that are not samples are passed over; nothing raises."""
    kind_of = {name: kind for kind, names in GAUGES.items() for name in names}
    info: list[tuple[int, dict[str, str]]] = []
    values: dict[str, list] = {}
    for number, raw in enumerate(text.splitlines(), start=1):
        match = _SAMPLE.fullmatch(clean(raw))
        if not match:
            continue
        name, labels = match.group(1), dict(_LABEL.findall(match.group(2) or ""))
        if name == _INFO:
            info.append((number, labels))
        elif name in kind_of:
            values.setdefault(kind_of[name], []).append((number, labels, float(match.group(3))))
    return MetricsPage(tuple(info), values)


def metrics_findings(page: MetricsPage, question: Question) -> list[Finding]:
    """A finding for each known sample, in the page's order; one says so when the cache's own is missing."""
    findings = [_info(number, labels, question) for number, labels in page.info_lines]
    blocks = next(
        (int(labels["num_gpu_blocks"]) for _, labels in page.info_lines if _has_blocks(labels)), None
    )
    for number, _, value in page.values.get("usage", []):
        findings.append(_usage(number, value, blocks))
    findings += _hits(page)
    for kind in ("running", "waiting", "preemptions"):
        for number, _, value in page.values.get(kind, []):
            verdict = NOTE if value >= 0 and value.is_integer() else DIFFERS
            says = f"{value:,.0f} {kind}" if verdict == NOTE else f"{value} is not a count."
            findings.append(Finding(number, GAUGES[kind][0], verdict, says))
    if not page.info_lines:
        says = "The page has no such sample, so the number of blocks is unknown."
        findings.append(Finding(None, _INFO, UNCHECKED, says))
    return sorted(findings, key=lambda finding: (finding.line is None, finding.line or 0))


def _has_blocks(labels: dict[str, str]) -> bool:
    shown = labels.get("num_gpu_blocks", "")
    return shown.isascii() and shown.isdigit() and len(shown) <= 15


def _info(number: int, labels: dict[str, str], question: Question) -> Finding:
    if not _has_blocks(labels):
        shown = labels.get("num_gpu_blocks", "absent")[:40]
        return Finding(number, _INFO, UNCHECKED, f"num_gpu_blocks is {shown}, which is not a number.")
    blocks, plan = int(labels["num_gpu_blocks"]), question.plan()
    size = blocks * plan.block_bytes
    says = f"{blocks:,} blocks of {plan.block_bytes:,} B are {size:,} B ({format_bytes(size)})."
    if not plan.is_hybrid:
        says += f" With {plan.block_size} tokens a block: {blocks * plan.block_size:,} tokens."
    if question.available is None:
        return Finding(number, _INFO, UNCHECKED, f"{says} Give --available to compare with the budget.")
    low, high = (plan.num_blocks(edge) for edge in bytes_behind(question.available))
    agrees = low <= blocks <= high
    says += f" {question.available} holds {low:,} to {high:,}."
    return Finding(number, _INFO, AGREES if agrees else DIFFERS, says)


def _usage(number: int, value: float, blocks: int | None) -> Finding:
    """usage = 1 - free / (blocks - 1): a whole number of blocks, of all but the null block."""
    name = GAUGES["usage"][0]
    if not 0 <= value <= 1:
        return Finding(number, name, DIFFERS, f"{value} is not between 0 and 1.")
    if not blocks or blocks < 2:
        return Finding(number, name, UNCHECKED, f"{value:.1%} of an unknown number of blocks is in use.")
    held = value * (blocks - 1)
    says = f"{held:,.0f} of {blocks - 1:,} blocks are in use (the null block is not counted)."
    whole = abs(held - round(held)) < 0.01 + 1e-6 * blocks
    if whole:
        return Finding(number, name, AGREES, says)
    return Finding(
        number, name, DIFFERS, f"{value} of {blocks - 1:,} blocks is {held:.3f}, not a whole number."
    )


def _hits(page: MetricsPage) -> list[Finding]:
    """Hits of each engine against the queries of the same engine; both are counted in tokens."""
    asked = {labels.get("engine"): value for _, labels, value in page.values.get("queries", [])}
    findings = []
    for number, labels, hits in page.values.get("hits", []):
        queries = asked.get(labels.get("engine"))
        name = GAUGES["hits"][0]
        if queries is None:
            findings.append(Finding(number, name, UNCHECKED, "The page has no queries to compare with."))
        elif not 0 <= hits <= queries:
            says = f"{hits:,.0f} tokens were hits, but only {queries:,.0f} were asked for."
            findings.append(Finding(number, name, DIFFERS, says))
        else:
            share = f" ({hits / queries:.1%})" if queries else ""
            findings.append(
                Finding(number, name, NOTE, f"{hits:,.0f} of {queries:,.0f} tokens were cached{share}.")
            )
    return findings
