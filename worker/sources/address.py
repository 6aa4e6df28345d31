"""Which network addresses a source may live at: a job must not make the worker read its own neighbourhood."""

from dataclasses import dataclass
from ipaddress import (
    AddressValueError,
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
)

# Cloud metadata services hand out credentials. Some sit at addresses that are public by the book
# (168.63.129.16 of Azure), others are what "private is fine" would let through.
_METADATA = frozenset(
    map(
        ip_address,
        (
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
        ),
    )
)
# Never a host to read from: "this" network, protocol assignments (whose standing in the standard library differs
# by Python version), the 6to4 relay anycast, multicast, reserved and broadcast.
_UNUSABLE_V4 = tuple(map(IPv4Network, ("0.0.0.0/8", "192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/4", "240.0.0.0/4")))
# The only IPv6 range handed out for public hosts; documentation lies inside it.
_PUBLIC_V6 = IPv6Network("2000::/3")
_DOCUMENTATION_V6 = tuple(map(IPv6Network, ("2001:db8::/32", "3fff::/20")))
_NAT64 = IPv6Network("64:ff9b::/96")

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Public addresses only; `allow_private` adds the machine and its networks, never metadata services."""

    allow_private: bool = False
    #: private networks that are open even so
    private_networks: tuple[Network, ...] = ()

    def allows(self, address: str) -> bool:
        """Judge the address a socket is about to connect to; what is not one canonical address is refused."""
        try:
            ip = ip_address(address)
        except (AddressValueError, ValueError):
            return False
        return self._allows_v4(ip) if isinstance(ip, IPv4Address) else self._allows_v6(ip)

    def _allows_v4(self, ip: IPv4Address) -> bool:
        if ip in _METADATA or any(ip in network for network in _UNUSABLE_V4):
            return False
        return ip.is_global or self._allows_private(ip)

    def _allows_v6(self, ip: IPv6Address) -> bool:
        if ip.ipv4_mapped is not None:
            return self._allows_v4(ip.ipv4_mapped)
        if ip in _METADATA or ip.is_multicast or ip.is_unspecified:
            return False
        inner = _embedded_v4(ip)
        if inner is not None:
            return all(self._allows_v4(address) for address in inner)
        public = ip in _PUBLIC_V6 and ip.is_global and not any(ip in network for network in _DOCUMENTATION_V6)
        return public or self._allows_private(ip)

    def _allows_private(self, ip: IPv4Address | IPv6Address) -> bool:
        return self.allow_private or any(ip in network for network in self.private_networks)


def _embedded_v4(ip: IPv6Address) -> tuple[IPv4Address, ...] | None:
    """The IPv4 hosts that a tunnelling or translating address stands for."""
    if ip.sixtofour is not None:
        return (ip.sixtofour,)
    if ip.teredo is not None:
        return ip.teredo
    if ip in _NAT64:
        return (IPv4Address(int(ip) & 0xFFFFFFFF),)
    return None
