"""XML as far as a DASH manifest needs it, without what makes XML dangerous: no DTD, no entities, no depth."""

from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

MAX_DEPTH: Final = 32
MAX_ELEMENTS: Final = 20_000
#: longer than any URL
MAX_TEXT_CHARS: Final = 8192


class UnsafeXmlError(ValueError):
    """Not XML, or more than plain elements; the message says what."""


@dataclass(slots=True)
class Element:
    #: without its namespace
    tag: str
    attributes: dict[str, str]
    children: list["Element"] = field(default_factory=list)
    text: str = ""

    def all(self, tag: str) -> list["Element"]:
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> "Element | None":
        return next((child for child in self.children if child.tag == tag), None)

    def has(self, tag: str) -> bool:
        """Whether there is such an element anywhere inside."""
        return any(child.tag == tag or child.has(tag) for child in self.children)


def parse_xml(content: bytes) -> Element:
    builder = _Builder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.add_text
    try:
        parser.Parse(content, True)  # noqa: FBT003 - expat knows no keywords
    except (expat.ExpatError, UnicodeError) as exc:
        raise UnsafeXmlError("is no well-formed XML") from exc
    return builder.root.children[0]


def _refuse_doctype(*_: object) -> None:
    raise UnsafeXmlError("declares a document type, which a manifest has no use for")


class _Builder:
    def __init__(self) -> None:
        self.root = Element("", {})
        self._open = [self.root]
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._open) > MAX_DEPTH or self._count > MAX_ELEMENTS:
            raise UnsafeXmlError("has more elements than a manifest needs")
        element = Element(_local(name), {_local(key): value for key, value in attributes.items()})
        self._open[-1].children.append(element)
        self._open.append(element)

    def end(self, _: str) -> None:
        self._open.pop()

    def add_text(self, text: str) -> None:
        element = self._open[-1]
        if len(element.text) < MAX_TEXT_CHARS:
            element.text += text


def _local(name: str) -> str:
    return name.rpartition(":")[2]
