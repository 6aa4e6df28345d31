"""Languages as whisper models know them, and as everybody else writes them."""

import re

# fmt: off
#: whisper's codes with whisper's names, which servers answer with
WHISPER_LANGUAGES = {
    "af": "afrikaans", "am": "amharic", "ar": "arabic", "as": "assamese", "az": "azerbaijani", "ba": "bashkir",
    "be": "belarusian", "bg": "bulgarian", "bn": "bengali", "bo": "tibetan", "br": "breton", "bs": "bosnian",
    "ca": "catalan", "cs": "czech", "cy": "welsh", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fo": "faroese",
    "fr": "french", "gl": "galician", "gu": "gujarati", "ha": "hausa", "haw": "hawaiian", "he": "hebrew",
    "hi": "hindi", "hr": "croatian", "ht": "haitian creole", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "is": "icelandic", "it": "italian", "ja": "japanese", "jw": "javanese", "ka": "georgian", "kk": "kazakh",
    "km": "khmer", "kn": "kannada", "ko": "korean", "la": "latin", "lb": "luxembourgish", "ln": "lingala",
    "lo": "lao", "lt": "lithuanian", "lv": "latvian", "mg": "malagasy", "mi": "maori", "mk": "macedonian",
    "ml": "malayalam", "mn": "mongolian", "mr": "marathi", "ms": "malay", "mt": "maltese", "my": "myanmar",
    "ne": "nepali", "nl": "dutch", "nn": "nynorsk", "no": "norwegian", "oc": "occitan", "pa": "punjabi",
    "pl": "polish", "ps": "pashto", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sa": "sanskrit",
    "sd": "sindhi", "si": "sinhala", "sk": "slovak", "sl": "slovenian", "sn": "shona", "so": "somali",
    "sq": "albanian", "sr": "serbian", "su": "sundanese", "sv": "swedish", "sw": "swahili", "ta": "tamil",
    "te": "telugu", "tg": "tajik", "th": "thai", "tk": "turkmen", "tl": "tagalog", "tr": "turkish", "tt": "tatar",
    "uk": "ukrainian", "ur": "urdu", "uz": "uzbek", "vi": "vietnamese", "yi": "yiddish", "yo": "yoruba",
    "yue": "cantonese", "zh": "chinese",
}
# fmt: on

#: today's codes, and others that people write, for what whisper calls by an older or wider one
_WHISPER_CODES = {"fil": "tl", "in": "id", "iw": "he", "jv": "jw", "mo": "ro", "nb": "no"}
#: whisper's code for Javanese is none of ISO 639
_ISO_CODES = {"jw": "jv"}
_CODES_BY_NAME = {
    **{name: code for code, name in WHISPER_LANGUAGES.items()},
    "burmese": "my",
    "castilian": "es",
    "flemish": "nl",
    "mandarin": "zh",
    "moldavian": "ro",
    "norwegian nynorsk": "nn",
    "valencian": "ca",
}
_CODE = re.compile(r"[a-z]{2,3}")


def primary_subtag(language: str) -> str:
    """`en` of `en-GB`."""
    return language.replace("_", "-").split("-")[0].lower()


def whisper_code(language: str) -> str | None:
    """What a whisper model calls it; None: it does not know it."""
    code = primary_subtag(language)
    code = _WHISPER_CODES.get(code, code)
    return code if code in WHISPER_LANGUAGES else None


def language_code(told: str) -> str | None:
    """The ISO 639 code of what an engine answered with: a code or an English name; None: neither."""
    told = told.strip().lower()
    code = _CODES_BY_NAME.get(told) or (primary_subtag(told) if _CODE.fullmatch(primary_subtag(told)) else None)
    return None if code is None else _ISO_CODES.get(code, code)
