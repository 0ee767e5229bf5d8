"""What is on this machine: packages, Java, and places where credentials were found. No value of a secret is read."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = {
    "pyarrow": "",
    "fsspec": "",
    "pyspark": "spark",
    "pandas": "spark",
    "grpcio": "connect",
    "s3fs": "s3",
    "botocore": "s3",
    "adlfs": "azure",
    "azure-storage-blob": "azure",
    "gcsfs": "gcs",
    "google-auth": "gcs",
    "hdfs-native": "hdfs",
    "pyiceberg": "iceberg",
    "opentelemetry-api": "opentelemetry",
}
_SPARKS = ((4, 1), (4, 4))
_JAVA_SECONDS = 20
LEAST_JAVA = 17

_VARIABLES = {
    "s3": (
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_SHARED_CREDENTIALS_FILE",
    ),
    "azure": (
        "AZURE_STORAGE_CONNECTION_STRING",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_CLIENT_SECRET",
        "AZURE_CLIENT_CERTIFICATE_PATH",
        "AZURE_FEDERATED_TOKEN_FILE",
    ),
    "gcs": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"),
    "hdfs": ("HADOOP_CONF_DIR", "HADOOP_USER_NAME", "KRB5CCNAME"),
}
_FILES = {
    "s3": ("~/.aws/credentials", "~/.aws/config"),
    "azure": ("~/.azure/msal_token_cache.json",),
    "gcs": ("~/.config/gcloud/application_default_credentials.json",),
    "hdfs": (),
}
_SECRET_NAME = re.compile(
    r"(key|secret|token|password|sas|connection_string|credential|account_name|client_id|profile|anon|provider)", re.I
)


def packages() -> dict[str, str | None]:
    """The version of each package that tablelog may use; `None`: it isn't installed."""
    return {name: _version(name) for name in _PACKAGES}


def extra_of(package: str) -> str:
    """The extra of tablelog that installs a package; "" for those that are always there."""
    return _PACKAGES[package]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def supports_spark(text: str) -> bool:
    """Whether tablelog supports this version of PySpark."""
    parts = re.match(r"(\d+)\.(\d+)", text)
    return parts is not None and _SPARKS[0] <= (int(parts[1]), int(parts[2])) < _SPARKS[1]


def pyspark_problem(version: str | None) -> str | None:
    """Why tablelog can't use an installed PySpark."""
    if version is None or supports_spark(version):
        return None
    return f"PySpark {version} isn't supported: tablelog needs 4.1, 4.2 or 4.3"


def java_problem(path: str | None, major: int | None) -> str | None:
    """Why Spark can't use a Java that was found."""
    if path is None or (major is not None and major >= LEAST_JAVA):
        return None
    return f"Java {major or 'of an unknown version'}, {path}: Spark needs {LEAST_JAVA} or newer"


def python() -> str:
    """The version of Python, and the machine."""
    return f"{platform.python_version()} on {platform.system()} {platform.machine()}"


def java() -> tuple[str | None, int | None]:
    """The path of the Java that Spark would start, and its major version; `None` where there is none."""
    home = os.environ.get("JAVA_HOME")
    path = f"{home}/bin/java" if home else shutil.which("java")
    if path is None or not Path(path).exists():
        return None, None
    try:
        ran = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return path, None
    return path, major_version(ran.stderr + ran.stdout)


def major_version(text: str) -> int | None:
    """The major version in the output of `java -version`: 8 for "1.8.0_392", 21 for "21.0.2"."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return None if match is None else int(match[1])


def credentials(backend: str, settings: Mapping[str, object], environment: Mapping[str, str]) -> list[str]:
    """Where credentials for a storage were found: names of settings, variables and files, without their content.

    Args:
        backend: `s3`, `azure`, `gcs` or `hdfs`.
        settings: The names of the settings that the user gave.
        environment: The variables of the process.
    """
    places = [f"setting {name}" for name in settings if _SECRET_NAME.search(name)]
    places += [f"variable {name}" for name in _VARIABLES.get(backend, ()) if environment.get(name)]
    places += [f"file {name}" for name in _FILES.get(backend, ()) if Path(name).expanduser().exists()]
    return places
