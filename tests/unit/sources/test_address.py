"""The address policy, address by address."""

from ipaddress import IPv4Network

import pytest

from worker.sources.address import AddressPolicy

PUBLIC = [
    "93.184.216.34",
    "8.8.8.8",
    "172.32.0.1",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
]
PRIVATE = [
    "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.1.1",
    "100.64.0.1", "100.127.255.255", "198.18.0.1", "192.0.2.1", "198.51.100.7", "203.0.113.9", "192.0.0.8",
    "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "fec0::1", "2001:db8::1", "3fff::1", "100::1",
    "64:ff9b:1::1", "5f00::1", "4000::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:7f00:1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::1",
    "2002:c0a8:101::", "::127.0.0.1", "2001:0:7f00:1::1",
]  # fmt: skip
NEVER = [
    "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "192.88.99.1",
    "169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "::", "ff02::1",
    "::ffff:169.254.169.254", "::ffff:0.0.0.0", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1",
]  # fmt: skip
NO_ADDRESS = [
    "",
    "localhost",
    "2130706433",
    "0x7f.1",
    "127.1",
    "0177.0.0.1",
    "0x7f000001",
    "127.0.0.1:80",
    "[::1]",
    " 8.8.8.8",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_address_is_allowed(address: str) -> None:
    assert AddressPolicy().allows(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_address_is_refused(address: str) -> None:
    assert not AddressPolicy().allows(address)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "192.168.1.1", "::1", "fd12::1", "::ffff:127.0.0.1", "8.8.8.8"]
)
def test_private_address_is_allowed_on_request(address: str) -> None:
    assert AddressPolicy(allow_private=True).allows(address)


@pytest.mark.parametrize("allow_private", [False, True])
@pytest.mark.parametrize("address", NEVER + NO_ADDRESS)
def test_metadata_services_and_what_is_no_host_are_never_allowed(address: str, allow_private: bool) -> None:
    assert not AddressPolicy(allow_private).allows(address)


def test_single_private_networks_can_be_opened_and_metadata_never() -> None:
    policy = AddressPolicy(private_networks=(IPv4Network("10.1.0.0/16"), IPv4Network("169.254.0.0/16")))
    answers = {address: policy.allows(address) for address in ("10.1.2.3", "::ffff:10.1.2.3", "10.2.0.1", "8.8.8.8")}
    assert answers == {"10.1.2.3": True, "::ffff:10.1.2.3": True, "10.2.0.1": False, "8.8.8.8": True}
    assert not policy.allows("169.254.169.254")
