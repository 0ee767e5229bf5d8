"""A private certificate authority, and the certificate of a service on this machine that it signed."""

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore

SERVICE_NAME = "store.example"
"""The host name in the certificate of the service, beside 127.0.0.1."""
TRUST_STORE_PASSWORD = "a-password"
_PEM = serialization.Encoding.PEM


def certificates(directory: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's context with a certificate of a private authority, and the authority's certificate.

    `directory` gets them as files: `private.key` and `public.crt` of the service, `ca.pem`, and `ca.p12`, which is
    Java's trust store.
    """
    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = _certificate("a private authority", "a private authority", root_key.public_key(), root_key, authority=True)
    own = _certificate("a service", "a private authority", key.public_key(), root_key, authority=False)
    (directory / "ca.pem").write_bytes(root.public_bytes(_PEM))
    trusted = [PKCS12Certificate(root, b"authority")]
    password = serialization.BestAvailableEncryption(TRUST_STORE_PASSWORD.encode())
    (directory / "ca.p12").write_bytes(serialize_java_truststore(trusted, password))
    private = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / "private.key").write_bytes(private)
    (directory / "public.crt").write_bytes(own.public_bytes(_PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "public.crt", directory / "private.key")
    return context, directory / "ca.pem"


def _certificate(name: str, issuer: str, public: Any, signer: Any, *, authority: bool) -> x509.Certificate:
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(1)
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName(SERVICE_NAME)]
    builder = x509.CertificateBuilder().subject_name(_named(name)).issuer_name(_named(issuer)).public_key(public)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
    builder = builder.add_extension(x509.BasicConstraints(authority, None), critical=True)
    return builder.add_extension(x509.SubjectAlternativeName(names), critical=False).sign(signer, hashes.SHA256())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
