"""Fields that do not end where bytes do, read and written; and the bytes that keep start codes out of them."""

import re
from typing import Final

#: two zeros before one of these would look like a start code
_UNSAFE: Final = re.compile(rb"\x00\x00(?=[\x00-\x03])")


def plain(payload: bytes) -> bytes:
    return payload.replace(b"\x00\x00\x03", b"\x00\x00")


def escaped(payload: bytes) -> bytes:
    return _UNSAFE.sub(b"\x00\x00\x03", payload)


class Bits:
    """A plain payload, bit by bit."""

    def __init__(self, payload: bytes) -> None:
        self._bits = f"{int.from_bytes(payload, 'big'):0{8 * len(payload)}b}" if payload else ""
        self.at = 0

    def take(self, count: int) -> int:
        if self.at + count > len(self._bits):
            raise IndexError(count)
        self.at += count
        return int(self._bits[self.at - count : self.at], 2) if count else 0

    def unsigned(self) -> int:
        zeros = 0
        while not self.take(1):
            zeros += 1
        return (1 << zeros) - 1 + self.take(zeros)

    def signed(self) -> int:
        number = self.unsigned()
        return (number + 1) // 2 if number % 2 else -(number // 2)

    def since(self, begin: int) -> str:
        """What was read from bit `begin` on, as it stands there."""
        return self._bits[begin : self.at]

    def content(self, begin: int) -> str:
        """Everything from bit `begin` on but the bits that only end the unit."""
        return self._bits[begin:].rstrip("0")[:-1]


def unsigned_code(number: int) -> str:
    code = f"{number + 1:b}"
    return "0" * (len(code) - 1) + code


def ended(content: str) -> bytes:
    """As a payload: with the bit that ends a unit, up to a whole byte."""
    return packed(content + "1")


def packed(content: str, padding: str = "0") -> bytes:
    whole = content + padding * (-len(content) % 8)
    return int(whole, 2).to_bytes(len(whole) // 8, "big") if whole else b""
