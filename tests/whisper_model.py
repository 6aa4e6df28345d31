"""A whisper model with random weights: every part of the real engine runs, and what it hears is gibberish."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from ctranslate2.specs import model_spec
from ctranslate2.specs.whisper_spec import WhisperSpec
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from worker.asr.languages import WHISPER_LANGUAGES

#: as many as real ones have; the engine takes this model for one that knows only English all the same
_TEXT_TOKENS = 50257
_LANGUAGES = list(WHISPER_LANGUAGES)
_TIMES = 1501
_WIDTH = 32
_HEADS = 2
_LETTERS = "abcdefghijklmnoprstuvwyz"


def write_whisper_model(directory: Path) -> Path:
    """Everything such a directory holds; the same in every run."""
    directory.mkdir(parents=True)
    spec = WhisperSpec(1, _HEADS, 1, _HEADS)
    specials = _special_tokens()
    tokens = _text_tokens()
    _fill(spec, vocabulary_size=len(tokens) + len(specials))
    spec.register_vocabulary([*tokens, *specials])
    spec.config.lang_ids = [_TEXT_TOKENS + 2 + number for number in range(len(_LANGUAGES))]
    spec.config.suppress_ids = []
    spec.config.suppress_ids_begin = [_TEXT_TOKENS]
    spec.config.alignment_heads = [(0, 0), (0, 1)]
    spec.validate()
    spec.save(str(directory))
    _write_tokenizer(directory / "tokenizer.json", tokens, specials)
    return directory


def _text_tokens() -> list[str]:
    rng = random.Random(7)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words: dict[str, None] = {}
    while len(words) < _TEXT_TOKENS - len(letters):
        words["Ġ" + "".join(rng.choices(_LETTERS, k=rng.randint(3, 8)))] = None
    return [*letters, *words]


def _special_tokens() -> list[str]:
    names = ["endoftext", "startoftranscript", *_LANGUAGES, "translate", "transcribe"]
    names += ["startoflm", "startofprev", "nospeech", "notimestamps"]
    names += [f"{number * 0.02:.2f}" for number in range(_TIMES)]
    return [f"<|{name}|>" for name in names]


def _write_tokenizer(path: Path, tokens: list[str], specials: list[str]) -> None:
    tokenizer = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(specials)
    tokenizer.save(str(path))


def _fill(spec: WhisperSpec, *, vocabulary_size: int) -> None:
    rng = np.random.default_rng(7)

    def noise(*shape: int) -> Any:
        return (rng.standard_normal(shape) * 0.3).astype(np.float32)

    spec.encoder.conv1.weight, spec.encoder.conv1.bias = noise(_WIDTH, 80, 3), noise(_WIDTH)
    spec.encoder.conv2.weight, spec.encoder.conv2.bias = noise(_WIDTH, _WIDTH, 3), noise(_WIDTH)
    spec.encoder.position_encodings.encodings = noise(1500, _WIDTH)
    spec.decoder.embeddings.weight = noise(vocabulary_size, _WIDTH)
    spec.decoder.position_encodings.encodings = 6 * noise(448, _WIDTH)
    spec.decoder.projection.weight = noise(vocabulary_size, _WIDTH)
    # A few words only, and an end: pure noise says the same word until its memory is full.
    spec.decoder.projection.bias = np.full(vocabulary_size, -20, dtype=np.float32)
    spec.decoder.projection.bias[_TEXT_TOKENS - 60 : _TEXT_TOKENS + 1] = 0
    spec.decoder.position_encodings.encodings[:, 0] = np.arange(448)
    spec.decoder.projection.weight[_TEXT_TOKENS] = 0
    spec.decoder.projection.weight[_TEXT_TOKENS, 0] = 2
    for layer in (*spec.encoder.layer, *spec.decoder.layer):
        _fill_linears(layer.self_attention.linear, (3, 1), noise)
        _fill_linears([layer.ffn.linear_0], (4,), noise)
        layer.ffn.linear_1.weight, layer.ffn.linear_1.bias = noise(_WIDTH, 4 * _WIDTH), noise(_WIDTH)
        if hasattr(layer, "attention"):
            _fill_linears(layer.attention.linear, (1, 2, 1), noise)
    for norm in _norms(spec):
        norm.gamma, norm.beta = np.ones(_WIDTH, dtype=np.float32), np.zeros(_WIDTH, dtype=np.float32)


def _fill_linears(linears: list[Any], heights: tuple[int, ...], noise: Any) -> None:
    for linear, height in zip(linears, heights, strict=True):
        linear.weight, linear.bias = noise(height * _WIDTH, _WIDTH), noise(height * _WIDTH)


def _norms(layer: model_spec.LayerSpec) -> Iterator[Any]:
    for value in vars(layer).values():
        for part in value if isinstance(value, list) else [value]:
            if type(part).__name__ == "LayerNormSpec":
                yield part
            elif isinstance(part, model_spec.LayerSpec):
                yield from _norms(part)
