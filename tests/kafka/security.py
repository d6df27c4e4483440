"""Listeners with SASL and TLS of a released cluster, users with passwords, and the files of their clients.

User `admin` and whoever comes without a name may do everything, user `bob` nothing. PLAIN users are in the brokers'
files, SCRAM users in the metadata of the cluster (`add_scram_users`).
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import attrs
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from tests.kafka.cluster import MAP

PASSWORDS: Final = {"admin": "admin-s3cret", "bob": "bob-s3cret"}
_STORE: Final = "store-s3cret"
_LOGIN: Final = "org.apache.kafka.common.security.{0}.{1}LoginModule required"


@attrs.frozen
class Security:
    """Hold the folder of certificates, made with keytool and openssl."""

    folder: Path

    def make(self) -> None:
        """Make the key of the brokers and the certificate that clients trust."""
        self.folder.mkdir()
        store = ("-keystore", str(self.folder / "broker.p12"), "-storepass", _STORE, "-alias", "broker")
        name = ("-dname", "CN=localhost", "-ext", "SAN=IP:127.0.0.1,DNS:localhost", "-ext", "BC=ca:true")
        for words in (("-genkeypair", "-keyalg", "RSA", *name), ("-exportcert", "-rfc", "-file", str(self.trusted))):
            subprocess.run(["keytool", *words, *store], check=True, capture_output=True)

    @property
    def trusted(self) -> Path:
        """Return the file of the certificate that clients trust."""
        return self.folder / "trusted.pem"

    def of_node(self, sasl_port: int, tls_port: int) -> dict[str, str]:
        """Return the settings of a node: a listener with SASL, one with TLS, and who may do what."""
        users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
        return {
            "listeners": f"SASL://127.0.0.1:{sasl_port},TLS://127.0.0.1:{tls_port}",
            MAP: "SASL:SASL_PLAINTEXT,TLS:SSL",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.sasl.plain.sasl.jaas.config": f"{_LOGIN.format('plain', 'Plain')} {users};",
            "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{_LOGIN.format('scram', 'Scram')};",
            "listener.name.sasl.scram-sha-512.sasl.jaas.config": f"{_LOGIN.format('scram', 'Scram')};",
            "ssl.keystore.location": str(self.folder / "broker.p12"),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.password": _STORE,
            "ssl.key.password": _STORE,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin",
        }

    def client_file(self, name: str, *lines: str) -> Path:
        """Write a client's properties file."""
        path = self.folder / f"{name}.properties"
        path.write_text("\n".join(("request.timeout.ms=4000", *lines)))
        return path

    def tls(self) -> Path:
        """Write the file of a client with TLS."""
        trust = (f"ssl.truststore.location={self.trusted}", "ssl.truststore.type=PEM")
        return self.client_file("tls", "security.protocol=SSL", *trust)

    def sasl(self, mechanism: str, user: str, password: str | None = None) -> Path:
        """Write the file of a user's client, whose password is the right one if none is given."""
        kind = ("plain", "Plain") if mechanism == "PLAIN" else ("scram", "Scram")
        login = f'{_LOGIN.format(*kind)} username="{user}" password="{password or PASSWORDS[user]}";'
        lines = ("security.protocol=SASL_PLAINTEXT", f"sasl.mechanism={mechanism}", f"sasl.jaas.config={login}")
        return self.client_file(f"{mechanism}-{user}-{password is None}", *lines)


def add_scram_users(admin: AdminClient) -> None:
    """Add the SCRAM passwords of all users."""
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):  # A request names a user once.
        given = ScramCredentialInfo(mechanism, 4096)
        asked = [UserScramCredentialUpsertion(user, given, password.encode()) for user, password in PASSWORDS.items()]
        for future in admin.alter_user_scram_credentials(asked).values():
            future.result(30)
