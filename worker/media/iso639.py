"""Codes of languages as MP4 wants them: three letters where everybody else writes two."""

from typing import Final

UNDETERMINED: Final = "und"

# fmt: off
_THREE_LETTERS: Final = {
    "af": "afr", "am": "amh", "ar": "ara", "as": "asm", "az": "aze", "ba": "bak", "be": "bel", "bg": "bul",
    "bn": "ben", "bo": "bod", "br": "bre", "bs": "bos", "ca": "cat", "cs": "ces", "cy": "cym", "da": "dan",
    "de": "deu", "el": "ell", "en": "eng", "es": "spa", "et": "est", "eu": "eus", "fa": "fas", "fi": "fin",
    "fo": "fao", "fr": "fra", "ga": "gle", "gl": "glg", "gu": "guj", "ha": "hau", "he": "heb", "hi": "hin",
    "hr": "hrv", "ht": "hat", "hu": "hun", "hy": "hye", "id": "ind", "is": "isl", "it": "ita", "ja": "jpn",
    "jv": "jav", "ka": "kat", "kk": "kaz", "km": "khm", "kn": "kan", "ko": "kor", "la": "lat", "lb": "ltz",
    "ln": "lin", "lo": "lao", "lt": "lit", "lv": "lav", "mg": "mlg", "mi": "mri", "mk": "mkd", "ml": "mal",
    "mn": "mon", "mr": "mar", "ms": "msa", "mt": "mlt", "my": "mya", "nb": "nob", "ne": "nep", "nl": "nld",
    "nn": "nno", "no": "nor", "oc": "oci", "pa": "pan", "pl": "pol", "ps": "pus", "pt": "por", "ro": "ron",
    "ru": "rus", "sa": "san", "sd": "snd", "si": "sin", "sk": "slk", "sl": "slv", "sn": "sna", "so": "som",
    "sq": "sqi", "sr": "srp", "su": "sun", "sv": "swe", "sw": "swa", "ta": "tam", "te": "tel", "tg": "tgk",
    "th": "tha", "tk": "tuk", "tl": "tgl", "tr": "tur", "tt": "tat", "uk": "ukr", "ur": "urd", "uz": "uzb",
    "vi": "vie", "yi": "yid", "yo": "yor", "zh": "zho",
}
# fmt: on


def three_letters(language: str) -> str:
    """`eng` of `en-GB`; `und` of what is none."""
    code = language.replace("_", "-").split("-")[0].lower()
    if len(code) == 3 and code.isascii() and code.isalpha():
        return code
    return _THREE_LETTERS.get(code, UNDETERMINED)
