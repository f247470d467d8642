"""Two start-up logs in the wording of vLLM 0.26, written for this course; their figures are published.

Figures: Qwen2.5-7B in float16 on one RTX 4090, utilisation 0.9, length 8,192, without and with fp8 KV.
"""

WEIGHTS_LINE = "Checkpoint size: 14.19 GiB"
FP16_LOG = f"""\
{WEIGHTS_LINE}
Available KV cache memory: 5.68 GiB
GPU KV cache size: 106,432 tokens
Maximum concurrency for 8,192 tokens per request: 12.99x
"""
FP8_LOG = f"""\
{WEIGHTS_LINE}
Available KV cache memory: 5.68 GiB
GPU KV cache size: 212,880 tokens
Maximum concurrency for 8,192 tokens per request: 25.99x
"""
