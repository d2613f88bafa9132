#!/usr/bin/env python3
"""Writes a decoder with random weights as a Hugging Face folder, where the real one cannot be fetched: time and memory do not depend
on what the weights are. Architectures: SmolLM2-135M's and Qwen2.5-0.5B's.

random_decoder.py TOKENIZER.gguf OUT [smollm2|qwen2]     the tokenizer is that of a GGUF file of the kind gpt2 (SmolLM2's, say; its head is enough)
niwaki bench decoder --model OUT --device cuda --precision bf16
"""

import json
import math
import pathlib
import struct
import sys

import numpy as np

MODELS = {
    "smollm2": {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 576, "num_hidden_layers": 30,
        "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536, "vocab_size": 49152,
        "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 1e5, "tie_word_embeddings": True, "hidden_act": "silu",
    },
    "qwen2": {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 896, "num_hidden_layers": 24,
        "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151936,
        "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": True, "hidden_act": "silu",
    },
}
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def metadata(path):
    """The key-value pairs at the head of a GGUF file."""
    with open(path, "rb") as file:

        def take(kinds):
            return struct.unpack("<" + kinds, file.read(struct.calcsize("<" + kinds)))

        def text():
            return file.read(take("Q")[0]).decode("utf8", "replace")

        def value(kind):
            if kind == 8:
                return text()
            if kind == 9:
                inner, count = take("IQ")
                return [value(inner) for _ in range(count)]
            return take(SCALARS[kind])[0]

        if file.read(4) != b"GGUF":
            sys.exit(f"{path}: no GGUF file")
        _, _, pairs = take("IQQ")
        return {text(): value(take("I")[0]) for _ in range(pairs)}


def tokenizer(found):
    tokens = found["tokenizer.ggml.tokens"]
    special = [place for place, kind in enumerate(found["tokenizer.ggml.token_type"]) if kind == 3]
    words = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    digits = {"type": "Digits", "individual_digits": True}
    letters = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "added_tokens": [{"id": place, "content": tokens[place]} | words for place in special],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, letters]},
        "post_processor": None,
        "decoder": letters,
        "model": {"type": "BPE", "vocab": {token: place for place, token in enumerate(tokens)}, "merges": found["tokenizer.ggml.merges"]},
    }


def shapes(config):
    width, hidden, heads, shared = (config[name] for name in ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"))
    found = {"model.embed_tokens.weight": (config["vocab_size"], width), "model.norm.weight": (width,)}
    keys = shared * (width // heads)
    for block in range(config["num_hidden_layers"]):
        home = f"model.layers.{block}."
        found |= {home + name: (width,) for name in ("input_layernorm.weight", "post_attention_layernorm.weight")}
        for name, rows in (("q", width), ("k", keys), ("v", keys)):
            found[f"{home}self_attn.{name}_proj.weight"] = (rows, width)
            if config["model_type"] == "qwen2":
                found[f"{home}self_attn.{name}_proj.bias"] = (rows,)
        found |= {home + "self_attn.o_proj.weight": (width, width), home + "mlp.down_proj.weight": (width, hidden)}
        found |= {f"{home}mlp.{name}_proj.weight": (hidden, width) for name in ("gate", "up")}
    return found


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[3:] and sys.argv[3] not in MODELS:
        sys.exit(__doc__)
    config = MODELS[(sys.argv[3:] or ["qwen2"])[0]]
    out = pathlib.Path(sys.argv[2])
    out.mkdir(parents=True)
    (out / "tokenizer.json").write_text(json.dumps(tokenizer(metadata(sys.argv[1]))))
    (out / "config.json").write_text(json.dumps(config))
    header, end = {}, 0
    for name, shape in shapes(config).items():
        begin, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    draw = np.random.default_rng(0)
    with open(out / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes(config).items():
            weights = np.ones(shape, np.float32) if "norm" in name else np.float32(0.02) * draw.standard_normal(shape, np.float32)
            # The upper half of a float's bits.
            file.write((weights.view(np.uint32) >> 16).astype(np.uint16).tobytes())
    print(f"{end // 2} parameters")


if __name__ == "__main__":
    main()
