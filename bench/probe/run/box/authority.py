"""The probe's own certificate authority, with which the gateway ends TLS in a box for the hosts that the owner named, and for
no others.

The authority's key is only in memory. A host's key is in a private file while OpenSSL reads it. None of the owner's trust
stores is changed: variables tell the agent of the authority, and in its box the usual bundles of root certificates contain
one more.
"""

from __future__ import annotations

import os
import ssl
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from bench.common.files import content_of, new_file

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

OWN_HOST_NAMES = ("localhost", "127.0.0.1", "::1")
"""The names of this machine, which share one certificate."""
HTTP, POSTGRESQL = "http/1.1", "postgresql"
"""The names of two protocols in TLS's ALPN extension."""
AUTHORITY_NAME = "bench probe: an authority of this run alone"
VALID_BEFORE, VALID_AFTER = timedelta(days=1), timedelta(days=90)
"""How long before and after now the certificates are valid."""
ROOT_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH")
"""Variables that name a file with all root certificates. NODE_EXTRA_CA_CERTS names additional ones."""
SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
)
"""The paths at which systems have their root certificates."""
PACKAGE_BUNDLES = ("*/cacert.pem", "pip/_vendor/certifi/cacert.pem", "*/data/ca-certificates.crt")
"""The paths in `site-packages` at which Python packages have root certificates."""
TRUST_STORE_PASSWORD = "changeit"  # Java's default; it protects nothing, since the file contains only certificates
MAX_BUNDLE_BYTES = 2**22
"""The most bytes of a file of root certificates."""


def ends_tls() -> bool:
    """Return whether the gateway can end TLS: whether the package `cryptography` is installed."""
    return find_spec("cryptography") is not None


class Authority:
    """A new certificate authority, which only programs trust that get its certificate. It needs the package `cryptography`.

    pem   its certificate
    """

    def __init__(self) -> None:
        from cryptography import x509  # noqa: PLC0415  an extra, and not needed without TLS

        self._key, self._name = _new_key(), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, AUTHORITY_NAME)])
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        builder = self._builder(self._name, self._key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).add_extension(
            usage, critical=True
        )
        self.pem = _pem_of(self._sign(builder))
        self._contexts = dict[tuple[str, str], ssl.SSLContext]()

    def context(self, host: str, protocol: str = HTTP) -> ssl.SSLContext:
        """Return the TLS context of a server with this host name, for one protocol."""
        if (host, protocol) not in self._contexts:
            self._contexts[host, protocol] = self._new_context(host, protocol)
        return self._contexts[host, protocol]

    def _new_context(self, host: str, protocol: str) -> ssl.SSLContext:
        """Return a TLS context with a new certificate for a host."""
        from cryptography import x509  # noqa: PLC0415  as above
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

        names = list[x509.GeneralName]()
        for name in OWN_HOST_NAMES if host in OWN_HOST_NAMES else (host,):
            try:
                names.append(x509.IPAddress(ip_address(name)))
            except ValueError:
                names.append(x509.DNSName(name.encode("idna").decode()))
        key = _new_key()
        builder = self._builder(x509.Name([]), key)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        text = _pem_of(self._sign(builder)) + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols([protocol])
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.NamedTemporaryFile(dir=memory) as file:  # its mode is 0600
            file.write(text)
            file.flush()
            context.load_cert_chain(file.name)
        return context

    def _builder(self, name: x509.Name, key: EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        """Return the builder of a certificate for a name and a key, issued by this authority."""
        from cryptography import x509  # noqa: PLC0415  as above

        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            self._name, name, key.public_key(), x509.random_serial_number(), now - VALID_BEFORE, now + VALID_AFTER
        )
        authority_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        subject_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        return builder.add_extension(authority_id, critical=False).add_extension(subject_id, critical=False)

    def _sign(self, builder: x509.CertificateBuilder) -> x509.Certificate:
        """Return the certificate of a builder, signed by this authority."""
        from cryptography.hazmat.primitives import hashes  # noqa: PLC0415  as above

        return builder.sign(self._key, hashes.SHA256())

    def write(self, folder: Path, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Write the files by which programs learn of this authority, and return the variables that name the files.

        Args:
            folder: The folder for the files, which the agent can read.
            environment: The agent's variables. Root certificates that they name remain trusted.
        """
        named_files = [Path(environment[name]) for name in ROOT_VARIABLES if environment.get(name)]
        roots = next(filter(None, map(_content_of, (*named_files, *map(Path, SYSTEM_BUNDLES)))), b"")
        files = {
            "authority.pem": self.pem,
            "roots.pem": self.with_authority(roots),
            "roots.p12": _java_roots(self.with_authority(roots)),
        }
        for name, content in files.items():
            with new_file(folder / name, 0o600) as file:
                file.write(content)
        java = f"-Djavax.net.ssl.trustStore={folder / 'roots.p12'} -Djavax.net.ssl.trustStorePassword={TRUST_STORE_PASSWORD}"
        return {
            **dict.fromkeys(ROOT_VARIABLES, str(folder / "roots.pem")),
            "NODE_EXTRA_CA_CERTS": str(folder / "authority.pem"),
            "JAVA_TOOL_OPTIONS": " ".join(filter(None, (environment.get("JAVA_TOOL_OPTIONS"), java))),
        }

    def with_authority(self, roots: bytes) -> bytes:
        """Return a bundle of root certificates with this authority added."""
        return roots + b"\n" * (not roots.endswith(b"\n")) + self.pem if roots else self.pem

    def bundles(self, packages: Iterable[Path], further_bundles: Iterable[Path] = ()) -> Iterator[tuple[Path, bytes]]:
        """Yield each bundle of root certificates with the content that the agent sees: the bundles of the system, the bundles
        of Python packages, and further bundles.

        Args:
            packages: Folders of Python packages.
            further_bundles: Further bundles, which the agent's variables name.
        """
        within = (path for folder in packages for pattern in PACKAGE_BUNDLES for path in folder.glob(pattern))
        for path in dict.fromkeys(path.resolve() for path in (*map(Path, SYSTEM_BUNDLES), *within, *further_bundles)):
            if roots := _content_of(path):
                yield path, self.with_authority(roots)


def package_folders(programs: Iterable[Path], folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the package folders of the Pythons among these programs, and of virtual environments in these folders."""
    prefixes = [program.parent.parent for program in programs]
    prefixes += [folder / name for folder in folders for name in (".venv", "venv", ".local")]
    for prefix in dict.fromkeys(prefixes):
        for pattern in ("lib/python3*/site-packages", "lib/python3*/dist-packages", "lib/python3/dist-packages"):
            yield from prefix.glob(pattern)


def offer_in(hello: bytes) -> tuple[str, tuple[str, ...]] | None:
    """Return the host and the protocols in the first bytes of a TLS ClientHello, of which the rest may be missing; None if the
    bytes begin no ClientHello. https://www.rfc-editor.org/rfc/rfc8446#section-4.1.2"""
    if len(hello) < 6 or hello[0] != 22 or hello[1] != 3 or hello[5] != 1:  # a record of a handshake, version 3.x, ClientHello
        return None
    position, host, protocols = 43, "", list[str]()  # after the headers of record and message, the version and 32 random bytes
    with suppress(IndexError):
        position += 1 + hello[position]  # the session's id
        position += 2 + int.from_bytes(hello[position : position + 2])  # the ciphers
        position += 1 + hello[position] + 2  # the compressions, and the length of the extensions
        while position + 4 <= len(hello):
            extension, size = int.from_bytes(hello[position : position + 2]), int.from_bytes(hello[position + 2 : position + 4])
            content, position = hello[position + 4 : position + 4 + size], position + 4 + size
            if extension == 0:  # server_name: the lengths of the list and the name, and the kind of the name, come first
                host = content[5:].decode("latin-1")
            elif extension == 16:  # ALPN: the length of the list comes first
                protocols += _protocols_in(content[2:])
    return host, tuple(protocols)


def _protocols_in(content: bytes) -> Iterator[str]:
    """Yield the protocols of an ALPN extension."""
    while content:
        yield content[1 : 1 + content[0]].decode("latin-1")
        content = content[1 + content[0] :]


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415  as above

    return ec.generate_private_key(ec.SECP256R1())


def _pem_of(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415  as above

    return certificate.public_bytes(Encoding.PEM)


def _java_roots(roots: bytes) -> bytes:
    """Return root certificates as a Java trust store (PKCS#12), without those that `cryptography` rejects."""
    from cryptography import x509  # noqa: PLC0415  as above
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12  # noqa: PLC0415

    certificates = list[pkcs12.PKCS12Certificate]()
    for number, part in enumerate(roots.split(b"-----BEGIN CERTIFICATE-----")[1:]):
        with suppress(ValueError), warnings.catch_warnings(action="ignore"):
            root = x509.load_pem_x509_certificate(b"-----BEGIN CERTIFICATE-----" + part)
            certificates.append(pkcs12.PKCS12Certificate(root, f"root{number}".encode()))
    return pkcs12.serialize_java_truststore(certificates, BestAvailableEncryption(TRUST_STORE_PASSWORD.encode()))


def _content_of(path: Path) -> bytes:
    """Return the content of a bundle; b"" if it cannot be read."""
    with suppress(OSError):
        return content_of(path, MAX_BUNDLE_BYTES)
    return b""
