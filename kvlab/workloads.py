"""Workloads: how many tokens requests bring and ask for, and when they arrive. A seed decides every number.

| name               | prompt, output (mean tokens)      | source                                            |
|--------------------|-----------------------------------|---------------------------------------------------|
| sharegpt           | 161.31, 337.99                    | means: PagedAttention paper, figure 11            |
| alpaca             | 19.31, 58.45                      | means: PagedAttention paper, figure 11            |
| azure-conversation | 1,154.7, 211.1                    | Azure LLM inference trace 2023, quantiles         |
| azure-code         | 2,047.8, 27.9                     | Azure LLM inference trace 2023, quantiles         |
| arxiv              | 2,588.1, 291.4                    | arXiv-summarization, quantiles                    |

The paper gives only means. The SPREAD of sharegpt and alpaca is our assumption: lognormal lengths with a
standard deviation of 1.32 (prompt) and 1.1 (output) times the mean. A prompt of more than 1,024 tokens or a
pair of more than OPT-13B's 2,048 is drawn again, as vLLM's benchmark script leaves such requests out; the
means are those of the pairs that stay.
Prompt and output are drawn independently: in the Azure traces they are nearly uncorrelated.

The quantile tables were computed from the Azure LLM inference traces 2023 (Microsoft, CC-BY; Patel et al.,
Splitwise, arXiv:2311.18677): 19,366 conversation and 8,819 code requests. Their mean arrival rates are 5.53
and 2.57 requests a second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

from kvlab.arrivals import AtOnce, Closed, Poisson
from kvlab.lengths import Bimodal, Fixed, LogNormal, Pair, Quantiles, Uniform

PROMPT_CV, OUTPUT_CV = 1.32, 1.1
LONGEST_PROMPT, LONGEST_PAIR = 1024, 2048
AZURE_RATES = {"azure-conversation": 5.53, "azure-code": 2.57}


class Request(NamedTuple):
    """One request: `arrival` in seconds, `prompt` and `output` in tokens."""

    request_id: int
    arrival: float
    prompt: int
    output: int


@dataclass(frozen=True)
class Workload:
    """Requests by arrival. `users`: at most so many in the system at once, None for no limit."""

    name: str
    requests: tuple[Request, ...]
    users: int | None = None

    @property
    def num_tokens(self) -> int:
        return sum(request.prompt + request.output for request in self.requests)

    def cut(self, max_len: int) -> Workload:
        """The workload for a model of `max_len` tokens: longer requests end at the limit, as a server does.

        An output is shortened to what the prompt leaves. A prompt is shortened to leave 1 token of output.
        """
        if max_len < 2:
            raise ValueError(f"max_len must leave room for a prompt and an output, at least 2, not {max_len}")
        cut = []
        for request in self.requests:
            prompt = min(request.prompt, max_len - 1)
            cut.append(request._replace(prompt=prompt, output=min(request.output, max_len - prompt)))
        return replace(self, requests=tuple(cut))


def _quantiles(mean: float, *tokens: int) -> Quantiles:
    shares = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
    return Quantiles(tuple(zip(shares, tokens, strict=True)), mean)


def _filtered(prompt_mean: float, output_mean: float) -> Pair:
    return Pair(
        LogNormal(prompt_mean, PROMPT_CV, LONGEST_PROMPT),
        LogNormal(output_mean, OUTPUT_CV, LONGEST_PAIR - 1),
        LONGEST_PAIR,
    )


LENGTHS: dict[str, Pair] = {
    # 0.3 % of the pairs are drawn again, the long ones: these means become 161.31 and 337.99.
    "sharegpt": _filtered(162.03, 342.43),
    "alpaca": _filtered(19.31, 58.45),
    "azure-conversation": Pair(
        _quantiles(1154.7, 396, 1020, 1189, 2734, 4083, 4142, 14050),
        _quantiles(211.1, 85, 129, 395, 424, 451, 601, 1000),
    ),
    "azure-code": Pair(
        _quantiles(2047.8, 578, 1469, 2744, 5187, 7303, 7436, 7437),
        _quantiles(27.9, 9, 13, 24, 55, 90, 251, 1899),
    ),
    "arxiv": Pair(
        _quantiles(2588.1, 1986, 2730, 3370, 3702, 3813, 3933, 4054),
        _quantiles(291.4, 115, 167, 242, 372, 736, 3271, 4056),
    ),
    "fixed": Pair(Fixed(256), Fixed(256)),
    "uniform": Pair(Uniform(1, 512), Uniform(1, 512)),
    "bimodal": Pair(
        Bimodal(Uniform(16, 64), Uniform(1024, 1536), 0.2),
        Bimodal(Uniform(16, 128), Uniform(256, 512), 0.2),
    ),
}
"""Prompt and output lengths of the named workloads."""


def workload(
    lengths: str | Pair | tuple,
    count: int,
    *,
    seed: int = 0,
    arrivals: AtOnce | Poisson | Closed | None = None,
    max_len: int | None = None,
) -> Workload:
    """`count` requests with these lengths.

    Args:
        lengths: a name from `LENGTHS`, or your own (prompt, output) distributions, as a `Pair` or a tuple.
        seed: decides every length and every arrival; lengths do not depend on the arrivals.
        arrivals: `AtOnce()` when None.
        max_len: the model's limit; see `Workload.cut`.

    Raises:
        ValueError: an unknown name, or a count below 1.
    """
    if isinstance(lengths, str):
        if lengths not in LENGTHS:
            raise ValueError(f"there is no workload {lengths!r}; there are: {', '.join(LENGTHS)}")
        name, lengths = lengths, LENGTHS[lengths]
    else:
        name, lengths = "your own", lengths if isinstance(lengths, Pair) else Pair(*lengths)
    if count < 1:
        raise ValueError(f"a workload has at least 1 request, not {count}")
    arrivals = arrivals or AtOnce()
    rng = Random(seed)
    times = arrivals.times(count, Random(seed + 1_000_003))
    requests = tuple(Request(i, times[i], *lengths.draw(rng)) for i in range(count))
    made = Workload(name, requests, arrivals.users)
    return made if max_len is None else made.cut(max_len)
