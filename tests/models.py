"""Models that several test files share: small ones with random weights, and SmolLM2 loaded once a process."""

from functools import cache

import torch

from kvlab.decoder import Decoder, DecoderConfig

QUESTION = "What is the capital of France? Tell me one fact about it."
# what SmolLM2-135M-Instruct.Q4_1 says to QUESTION greedily, when its end token (2) does not stop it
ANSWER = [504, 3575, 282, 4649, 314, 7042, 30, 2, 198, 2, 1, 9690, 198, 2, 198, 1]
ANSWER += [4093, 198, 57, 5248, 3946, 288, 7198, 253, 725, 1406, 28, 253, 5069, 1478, 3292, 817]


def small_config(num_heads=4, num_kv_heads=2, head_dim=8, **changes) -> DecoderConfig:
    sizes = {"num_layers": 2, "hidden_size": 24, "intermediate_size": 40, "vocab_size": 50}
    sizes |= {"context_length": 256, "rope_base": 1000.0, **changes}
    return DecoderConfig(num_heads=num_heads, num_kv_heads=num_kv_heads, head_dim=head_dim, **sizes)


@cache
def small_decoder(num_heads=4, num_kv_heads=2, seed=0, dtype=torch.float32) -> Decoder:
    return Decoder.random(small_config(num_heads, num_kv_heads), seed=seed, dtype=dtype)


@cache
def smollm(path, undo_permutation=True, dtype=torch.float32) -> Decoder:
    return Decoder.from_gguf(path, dtype=dtype, undo_permutation=undo_permutation)


def transformers_model(weights):
    """The same weights in transformers' LlamaForCausalLM: an implementation that shares no code with ours."""
    import transformers

    c = weights.config
    config = transformers.LlamaConfig(
        vocab_size=c.vocab_size,
        hidden_size=c.hidden_size,
        intermediate_size=c.intermediate_size,
        num_hidden_layers=c.num_layers,
        num_attention_heads=c.num_heads,
        num_key_value_heads=c.num_kv_heads,
        head_dim=c.head_dim,
        max_position_embeddings=c.context_length,
        rms_norm_eps=c.rms_epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": c.rope_base},
        tie_word_embeddings=True,
        attention_bias=False,
        mlp_bias=False,
    )
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config)
    names = {
        "attn_norm": "input_layernorm",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "ffn_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    }
    state = {"model.embed_tokens.weight": weights.embedding, "model.norm.weight": weights.output_norm}
    for i, layer in enumerate(weights.layers):
        state |= {f"model.layers.{i}.{theirs}.weight": getattr(layer, ours) for ours, theirs in names.items()}
    missing, unexpected = model.load_state_dict(state, strict=False, assign=True)
    assert missing in ([], ["lm_head.weight"]) and not unexpected
    model.tie_weights()
    # the rotation's frequencies are no weights: building on "meta" left them empty
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    return model.eval()


@torch.no_grad()
def transformers_logits(model, ids):
    """Logits [T, vocab] of every position, under an explicit all-ones mask (the pad id occurs in prompts)."""
    tokens = torch.tensor([ids])
    return model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).logits[0].float()
