"""Checking an engine's own figures: a vLLM start-up log or metrics page against the formulas.

For each line: it agrees, it differs (by how much, and what would explain it), or it cannot be checked.
The formulas are those of `sizing`; nothing of vLLM is imported, only its public output is read.
"""

from kvlab.engine_findings import AGREES, DIFFERS, NOTE, UNCHECKED, Finding, Report, ask
from kvlab.engine_log import LOOKED_FOR, EngineLog, read_log
from kvlab.engine_metrics import is_metrics_page, metrics_findings, read_metrics
from kvlab.engine_verdicts import log_findings
from kvlab.sizing import ModelShape

__all__ = ["AGREES", "DIFFERS", "NOTE", "UNCHECKED", "Finding", "ForeignText", "Report", "engine_report"]


class ForeignText(ValueError):
    """Text in which none of an engine's figures was found; the message says what was looked for."""


def engine_report(
    text: str,
    shape: ModelShape,
    *,
    block_size: int | None = None,
    kv_dtype: str | None = None,
    tensor_parallel: int | None = None,
    in_flight: int | None = None,
    available: str | None = None,
    weights: int | None = None,
) -> Report:
    """Check a start-up log or a metrics page of an engine that serves the model `shape`.

    What is not given is taken from the text (block size, dtypes, tensor parallel size, tokens in flight),
    else from vLLM's defaults: 16 tokens a block, the model's dtype, one GPU, 2,048 tokens. `available` is a
    size such as "5.68 GiB", for a text that does not tell it. `weights` (bytes) checks the checkpoint size.
    Raises ForeignText when the text has none of the figures, ValueError when the settings make no sense.
    """
    page = read_metrics(text) if is_metrics_page(text) else None
    log = page.as_settings() if page else read_log(text)
    question = ask(
        log,
        shape,
        block_size=block_size,
        kv_dtype=kv_dtype,
        tensor_parallel=tensor_parallel,
        in_flight=in_flight,
        available=available,
        weights=weights,
    )
    if page:
        return Report(tuple(metrics_findings(page, question)), question.settings())
    _refuse_foreign(log, text)
    return Report(tuple(log_findings(log, question)), question.settings(log.version))


def _refuse_foreign(log: EngineLog, text: str) -> None:
    if any(line.kind in (*LOOKED_FOR, "blocks") for line in log.lines):
        return
    wanted = "; ".join(f'"{line}"' for line in LOOKED_FOR.values())
    raise ForeignText(
        f"None of an engine's figures was found in {len(text.splitlines()):,} lines. Looked for lines "
        f"such as {wanted}; or for a metrics page with vllm:cache_config_info."
    )
