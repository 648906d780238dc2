"""An authority's certificates are good for the host that they name, to a client that knows it, and to no other."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("cryptography", reason="cryptography is not installed: pip install 'recovery-bench[probe]'")

from bench.probe.run.box.authority import Authority, offer_in, package_folders

AUTHORITY = Authority()
STRICT = 0x20
"""OpenSSL's strict reading of certificates, as Python 3.13 has it by default."""


def first_message(host: str, protocols: list[str], context: ssl.SSLContext | None = None) -> bytes:
    """Return what Python's own client says first."""
    context = context or ssl.create_default_context()
    if protocols:
        context.set_alpn_protocols(protocols)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=host).do_handshake()
    return outgoing.read()


def shaken(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> str | None:
    """Return the protocol that a client and a server agree on. Raises SSLError."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [server.wrap_bio(there, back, server_side=True), client.wrap_bio(back, there, server_hostname=host)]
    for _ in range(6):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ends[0].version()
    return ends[1].selected_alpn_protocol()


@pytest.mark.parametrize("host", ["api.example.com", "127.0.0.1", "::1", "bücher.example"])
@pytest.mark.parametrize("strict", [0, STRICT])
def test_a_client_that_knows_it_verifies_the_host_and_speaks_http_1(host: str, strict: int) -> None:
    client = ssl.create_default_context(cadata=AUTHORITY.pem.decode())
    client.verify_flags |= strict
    client.set_alpn_protocols(["h2", "http/1.1"])
    assert shaken(AUTHORITY.context(host), client, host) == "http/1.1"


def test_a_client_that_does_not_know_it_or_asks_for_another_host_refuses() -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="unable to get local issuer"):
        shaken(AUTHORITY.context("a.example"), ssl.create_default_context(cadata=Authority().pem.decode()), "a.example")
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shaken(AUTHORITY.context("a.example"), ssl.create_default_context(cadata=AUTHORITY.pem.decode()), "b.example")


def test_the_files_that_programs_read_keep_the_owners_roots_and_hold_no_key(tmp_path: Path) -> None:
    (tmp_path / "owners.pem").write_bytes(owners := Authority().pem)
    variables = AUTHORITY.write(tmp_path, {"SSL_CERT_FILE": str(tmp_path / "owners.pem"), "JAVA_TOOL_OPTIONS": "-Xmx1g"})
    assert Path(variables["REQUESTS_CA_BUNDLE"]).read_bytes() == owners + AUTHORITY.pem
    assert Path(variables["NODE_EXTRA_CA_CERTS"]).read_bytes() == AUTHORITY.pem
    assert variables["JAVA_TOOL_OPTIONS"].startswith("-Xmx1g -Djavax.net.ssl.trustStore=")
    assert not any(b"PRIVATE" in path.read_bytes() for path in tmp_path.iterdir())
    assert (tmp_path / "owners.pem").read_bytes() == owners


def test_bundles_of_packages_are_found_in_environments_and_have_one_certificate_more(tmp_path: Path) -> None:
    packages = tmp_path / "agent" / ".venv" / "lib" / "python3.12" / "site-packages"
    for name in ("certifi/cacert.pem", "stripe/data/ca-certificates.crt", "pip/_vendor/certifi/cacert.pem"):
        (packages / name).parent.mkdir(parents=True)
        (packages / name).write_bytes(b"roots")
    bundles = dict(AUTHORITY.bundles(package_folders([Path("/nowhere/bin/python")], [tmp_path / "agent"])))
    ours = {path: content for path, content in bundles.items() if path.is_relative_to(tmp_path)}
    assert len(ours) == 3 and set(ours.values()) == {b"roots\n" + AUTHORITY.pem}
    assert all(path.read_bytes() == b"roots" for path in ours)


@pytest.mark.parametrize("protocols", [[], ["h2"], ["h2", "http/1.1"]])
def test_a_first_message_tells_the_host_and_the_protocols(protocols: list[str]) -> None:
    assert offer_in(first_message("api.example.com", protocols)) == ("api.example.com", tuple(protocols))


@given(st.one_of(st.binary(max_size=300), st.tuples(st.integers(0, 600), st.binary(max_size=9))))
def test_no_bytes_break_the_reader_of_first_messages(given_bytes: bytes | tuple[int, bytes]) -> None:
    if isinstance(given_bytes, bytes):
        offer_in(given_bytes)
        offer_in(b"\x16\x03\x01\0\0\x01" + given_bytes)
    else:
        at, more = given_bytes
        whole = first_message("api.example.com", ["h2"])
        offer_in(whole[:at] + more + whole[at + len(more) :])
