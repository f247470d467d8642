"""05.grouped: all query heads at once, without a copy of K for each of them."""

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.n05_paged_attention.numbers import expect_close, random
from kvlab.exercises.trial import Trial

STUB = '''\
def grouped(q, k, v):
    """Attention of all query heads; the heads of a group share one KV head.

    Args:
        q: [Hq, D].  k, v: [T, Hkv, D], as `gather` returns them. Hq = G * Hkv, and query heads
            h * G to h * G + G - 1 read KV head h.

    Returns:
        [Hq, D]. K and V are not repeated for the heads of a group: on a GPU that would be G times
        the memory traffic, and the traffic is what decode costs.

    Worked line: Hq 4, Hkv 2 -> heads 0 and 1 read KV head 0, heads 2 and 3 read KV head 1.
    """
    ...  # about 5 lines of torch; fold q into [Hkv, G, D] first
'''

SOLUTION = '''\
def grouped(q, k, v):
    """Attention of all query heads [Hq, D], each group over its own KV head."""
    folded = q.reshape(k.shape[1], -1, q.shape[1])  # [Hkv, G, D]
    scores = folded @ k.permute(1, 2, 0) / math.sqrt(q.shape[1])  # [Hkv, G, T]
    weights = torch.softmax(scores, dim=-1)  # [Hkv, G, T]
    output = weights @ v.transpose(0, 1)  # [Hkv, G, D]
    return output.reshape(q.shape)  # [Hq, D]
'''

HINTS = (
    "`q.reshape(Hkv, G, D)` puts the heads of a group side by side. Then one matrix product per KV head "
    "serves the whole group: `[Hkv, G, D] @ [Hkv, D, T]`.",
    "`k.permute(1, 2, 0)` is K as [Hkv, D, T], and `v.transpose(0, 1)` is V as [Hkv, T, D]; both are views. "
    "`torch.softmax(scores, dim=-1)` goes over the tokens.",
)


def check(trial: Trial) -> str:
    from kvlab.attention import attention_oracle

    for number, (heads, kv_heads, tokens, head_dim) in enumerate(
        [(4, 2, 5, 4), (2, 2, 3, 4), (8, 1, 4, 4), (6, 2, 7, 8), (32, 8, 3, 4)]
    ):
        group = heads // kv_heads
        q = random(heads, head_dim, seed=number, factor=2.0)  # [Hq, D]
        k, v = random(2, tokens, kv_heads, head_dim, seed=30 + number)  # [T, Hkv, D] each
        given = f"Hq {heads}, Hkv {kv_heads}, {tokens} tokens"
        because = (
            f"the group is {group}: query heads 0 to {group - 1} read KV head 0"
            if group > 1
            else "every query head has a KV head of its own"
        )
        got = trial.call(q, k, v, given=given)
        expect_close(got, attention_oracle(q, k, v), given=given, because=because)
    _never_repeats(trial)
    return "One read of K and V serves the whole group."


def _never_repeats(trial: Trial) -> None:
    from kvlab.exercises.n05_paged_attention.largest import largest_made

    q, (k, v) = random(16, 64, seed=1), random(2, 128, 2, 64, seed=2)  # [Hq, D], [T, Hkv, D] each
    given = "Hq 16, Hkv 2, 128 tokens, D = 64"
    made = trial.call(given=given, function=lambda: largest_made(trial.answer, q, k, v))
    if made > k.numel():
        raise Refused(
            f"{given}: right, but a tensor of {made} numbers was made, and all of K has {k.numel()}; do not "
            "repeat K or V for each query head, fold the queries instead."
        )


exercise = Exercise(
    id="05.grouped",
    title="Fold the group",
    setup="import math\n\nimport torch",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "heads dealt out in turn",
            edited(
                SOLUTION,
                "q.reshape(k.shape[1], -1, q.shape[1])",
                "q.reshape(-1, k.shape[1], q.shape[1]).transpose(0, 1)",
            ),
            says="the group is 2: query heads 0 to 1 read KV head 0",
        ),
        WrongAnswer(
            "repeats K and V",
            "def grouped(q, k, v):\n"
            "    group = q.shape[0] // k.shape[1]\n"
            "    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)\n"
            "    scores = torch.einsum('hd,thd->ht', q, k) / math.sqrt(q.shape[1])\n"
            "    return torch.einsum('ht,thd->hd', torch.softmax(scores, -1), v)\n",
            says="do not repeat K or V for each query head",
        ),
        WrongAnswer(
            "the whole cache for every head",
            "def grouped(q, k, v):\n"
            "    k, v = k[:, 0], v[:, 0]\n"
            "    return torch.softmax(q @ k.T / math.sqrt(q.shape[1]), -1) @ v\n",
            says="Hq 4, Hkv 2, 5 tokens: expected",
        ),
        WrongAnswer(
            "softmax over the group",
            edited(SOLUTION, "dim=-1", "dim=1"),
            says="Hq 4, Hkv 2, 5 tokens: expected",
        ),
        WrongAnswer(
            "group left folded",
            edited(SOLUTION, "output.reshape(q.shape)", "output"),
            says="expected a result of shape [4, 4]",
        ),
        WrongAnswer(
            "unfolded in another order",
            edited(SOLUTION, "output.reshape(q.shape)", "output.transpose(0, 1).reshape(q.shape)"),
            says="query heads 0 to 1 read KV head 0; got",
        ),
        WrongAnswer(
            "tokens and heads exchanged",
            edited(SOLUTION, "k.permute(1, 2, 0)", "k.reshape(k.shape[1], -1, k.shape[0])"),
            says="Hq 4, Hkv 2, 5 tokens",
        ),
    ],
)
