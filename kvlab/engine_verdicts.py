"""Verdicts on the lines of a start-up log: recompute each figure from the model and compare.

A log prints rounded figures: "5.68 GiB" stands for 10 MiB of budgets, so the computed figure is a range,
and a line agrees when it lies inside.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from kvlab.engine_explain import explain
from kvlab.engine_findings import AGREES, DIFFERS, NOTE, UNCHECKED, Finding, Question
from kvlab.engine_log import LOOKED_FOR, EngineLog, LogLine, smallest_budget
from kvlab.layer_groups import Plan
from kvlab.layer_kinds import ceil_div
from kvlab.units import bytes_behind, format_bytes

Span = tuple[int, int]  # the smallest and the largest number of blocks, both possible


@dataclass(frozen=True)
class Sums:
    """What a log leaves to compute with: the pool's layout, the request's length, the budget as written."""

    question: Question
    length: int | None
    budget: str | None

    @cached_property
    def plan(self) -> Plan:
        return self.question.plan()

    def with_question(self, other: Question) -> "Sums":
        """The same log, read as if the engine had been set up otherwise."""
        return replace(self, question=other)

    @property
    def blocks_in_budget(self) -> Span | None:
        """Blocks that the budget may give: a range, because it is printed rounded."""
        if self.budget is None:
            return None
        low, high = bytes_behind(self.budget)
        return self.plan.num_blocks(low), self.plan.num_blocks(high)

    @property
    def blocks_a_request(self) -> int | None:
        if not self.length:
            return None
        states = self.question.state_blocks
        return self.plan.blocks_per_request(self.length, self.question.in_flight, state_blocks=states)

    def blocks_behind_tokens(self, tokens: int) -> list[Span]:
        """Block counts that print as this many tokens: by int(n * length / blocks a request), or n * B."""
        spans = []
        if needed := self.blocks_a_request:
            first = ceil_div(tokens * needed, self.length)
            last = ((tokens + 1) * needed - 1) // self.length
            # the engine divides in floating point, which may put an exact multiple one token lower
            last += int((last + 1) / needed * self.length) == tokens
            spans += [(first, last)] if first <= last else []
        if not self.plan.is_hybrid and tokens % self.plan.block_size == 0:
            spans.append((tokens // self.plan.block_size,) * 2)
        return spans

    def tokens_of(self, blocks: int) -> int:
        if needed := self.blocks_a_request:
            return int(blocks / needed * self.length)
        return blocks * self.plan.block_size


def _overlap(one: Span, other: Span) -> Span | None:
    span = max(one[0], other[0]), min(one[1], other[1])
    return span if span[0] <= span[1] else None


def _shown(span: Span) -> str:
    return f"{span[0]:,}" if span[0] == span[1] else f"{span[0]:,} to {span[1]:,}"


def log_findings(log: EngineLog, question: Question) -> list[Finding]:
    """A finding for each line that says a size, in the log's order, then one for each missing line."""
    poorest = smallest_budget(log)
    budget = question.available or (poorest and poorest.values[0])
    length = next((line.values[0] for line in log.of("concurrency") if line.values[0] > 0), None)
    sums = Sums(question, length or question.max_model_len, budget)
    tokens = next((line.values[0] for line in log.of("tokens")), None)
    findings = []
    for line in log.lines:
        if line.kind == "available":
            verdict, says = _available(line, sums, tokens, line is poorest, len(log.of("available")))
        elif line.kind == "tokens":
            verdict, says = _tokens(line.values[0], sums)
        elif line.kind == "concurrency":
            verdict, says = _concurrency(line, sums, tokens)
        elif line.kind == "blocks":
            verdict, says = _blocks(line.values[0], sums)
        elif line.kind == "raised":
            verdict, says = _raised(line.values[0], sums)
        else:
            verdict, says = _weights(line, question)
        findings.append(Finding(line.number, line.text, verdict, says))
    findings += _null_block(sums, tokens)
    for kind in ("available", "tokens", "concurrency"):
        if not log.of(kind) and not (kind == "available" and question.available):
            findings.append(Finding(None, LOOKED_FOR[kind], UNCHECKED, "The text has no line like this one."))
    return findings


def _available(line: LogLine, sums: Sums, tokens: int | None, decides: bool, ranks: int):
    low, high = bytes_behind(line.values[0])
    if not decides and ranks > 1:
        return NOTE, f"This rank has no less than the poorest one, whose {sums.budget} decides for all."
    span = sums.plan.num_blocks(low), sums.plan.num_blocks(high)
    says = (
        f"Rounded: it stands for {low:,} to {high:,} B, which hold {_shown(span)} blocks of "
        f"{sums.plan.block_bytes:,} B."
    )
    if ranks > 1:
        says += f" It is the smallest of {ranks} ranks, so it decides for all."
    for behind in sums.blocks_behind_tokens(tokens) if tokens is not None else []:
        if both := _overlap(behind, span):
            used = both[0] * sums.plan.block_bytes
            return (
                AGREES,
                f"{says} The logged tokens are {_shown(both)} of them: {used:,} B or a little more.",
            )
    return NOTE, says


def _tokens(tokens: int, sums: Sums):
    spans = sums.blocks_behind_tokens(tokens)
    budget = sums.blocks_in_budget
    if budget is None:
        behind = f" It would be {_shown(spans[0])} blocks." if spans else ""
        return UNCHECKED, f"There is no budget to compare with.{behind} Give --available."
    for span in spans:
        if both := _overlap(span, budget):
            size = format_bytes(both[0] * sums.plan.block_bytes)
            return (
                AGREES,
                f"{_shown(both)} blocks of {sums.plan.block_size} tokens, {size}: as the formula says.",
            )
    low, high = sums.tokens_of(budget[0]), sums.tokens_of(budget[1])
    says = f"The formula gives {_shown((low, high))} tokens. {_off(tokens, low, high)}"
    old = {sums.plan.tokens_by_old_formula(n) for n in budget}
    if sums.plan.is_hybrid and min(old) <= tokens <= max(old):
        return DIFFERS, (
            f"{says} It is what older versions print for {len(sums.plan.groups)} layer groups "
            "(blocks // groups * block size), which is too small: the groups share one pool."
        )
    return DIFFERS, says + explain(sums.question, lambda other: _fits(tokens, sums.with_question(other)))


def _fits(tokens: int, sums: Sums) -> bool:
    return any(_overlap(span, sums.blocks_in_budget) for span in sums.blocks_behind_tokens(tokens))


def _off(value, low, high) -> str:
    """By how much a figure misses a range, in words."""
    nearest = low if value < low else high
    share = f" ({abs(value - nearest) / nearest:.1%})" if nearest else ""
    return f"The log says {abs(value - nearest):,} {'less' if value < nearest else 'more'}{share}."


def _concurrency(line: LogLine, sums: Sums, tokens: int | None):
    length, shown = line.values
    needed = sums.blocks_a_request
    if length < 1 or not needed:
        return UNCHECKED, "A request of 0 tokens cannot be sized."
    span = sums.blocks_in_budget
    spans = sums.blocks_behind_tokens(tokens) if tokens is not None else []
    # the token count is exact, so it is the better source of the number of blocks than the rounded budget
    known = next((both for s in spans if (both := _overlap(s, span) if span else s)), span)
    if known is None:
        return UNCHECKED, "There is no budget and no token count to compare with. Give --available."
    half = Fraction(1, 2 * 10 ** len(shown.partition(".")[2]))
    low, high = Fraction(known[0], needed) - half, Fraction(known[1], needed) + half
    says = (
        f"{_shown(known)} blocks / {needed:,} blocks a request = {float(low + half):.2f}"
        f"{'' if known[0] == known[1] else f' to {float(high - half):.2f}'}."
    )
    if low <= Fraction(shown) <= high:
        return AGREES, says
    value = Fraction(shown)

    def agrees(other: Question) -> bool:
        variant = sums.with_question(other)
        blocks, each = variant.blocks_in_budget or known, variant.blocks_a_request
        return Fraction(blocks[0], each) - half <= value <= Fraction(blocks[1], each) + half

    return DIFFERS, f"{says} The log says {shown}." + explain(sums.question, agrees)


def _blocks(blocks: int, sums: Sums):
    budget = sums.blocks_in_budget
    if budget is None:
        return UNCHECKED, "There is no budget to compare with. Give --available."
    if budget[0] <= blocks <= budget[1]:
        return AGREES, f"The budget holds {_shown(budget)} blocks of {sums.plan.block_bytes:,} B."
    return DIFFERS, f"The budget holds {_shown(budget)} blocks. {_off(blocks, *budget)}"


def _raised(tokens: int, sums: Sums):
    if tokens == sums.plan.block_size:
        return AGREES, "The smallest block whose attention page holds a linear layer's state."
    return DIFFERS, (
        f"The formula gives {sums.plan.block_size:,} tokens: the block is raised until an attention page "
        "holds a linear layer's state. Is this the model, and are these the dtypes, of the log?"
    )


def _weights(line: LogLine, question: Question):
    if line.kind == "loaded":
        return NOTE, "The weights on one GPU, with what loading them took besides."
    if question.weights is None:
        return UNCHECKED, "Give --model or --weights to compare the size of the weights."
    low, high = bytes_behind(line.values[0])
    if low <= question.weights <= high:
        return AGREES, f"The weights are {question.weights:,} B, {format_bytes(question.weights)}."
    return (
        DIFFERS,
        f"The weights are {question.weights:,} B. {_off((low + high) // 2, *(question.weights,) * 2)}",
    )


def _null_block(sums: Sums, tokens: int | None) -> list[Finding]:
    """A warning when the last full-length request would need the null block: "1.00x", and then it hangs."""
    needed = sums.blocks_a_request
    spans = sums.blocks_behind_tokens(tokens) if tokens else []
    if not needed or not spans or spans[0][0] != spans[0][1] or spans[0][0] % needed:
        return []
    times, blocks = spans[0][0] // needed, spans[0][0]
    who = "1 request of full length needs" if times == 1 else f"{times} requests of full length need"
    then = "so such a request waits for ever" if times == 1 else f"so only {times - 1} run at once"
    says = f"{who} all {blocks:,} blocks, but one is the null block, which is never handed out, {then}."
    return [Finding(None, "null block", NOTE, says)]
