"""Ceph RGW 16 (S3), Debian's own: a PUT is atomic, and the end of a multi-part upload ignores its condition in silence.

Nothing is installed in the system: Debian's packages are unpacked in the cache. It is a second opinion: where there is
no Debian 12 its tests are skipped, in CI too.
"""

import os
import re
import subprocess
import uuid
from pathlib import Path
from typing import ClassVar

from . import install, process
from .s3 import ACCESS_KEY, SECRET_KEY, S3Server

_PACKAGES = ("radosgw", "ceph-mon", "ceph-osd", "ceph-common")

_START = f"""set -e
monmaptool --create --addv a "v2:127.0.0.1:$1" --fsid "$2" monmap
ceph-authtool --create-keyring keyring --gen-key -n mon. --cap mon 'allow *'
ceph-mon -i a --mkfs --monmap monmap --keyring keyring
ceph-mon -i a -f &
ceph --connect-timeout 30 osd new "$3"
ceph-osd -i 0 --mkfs --osd-uuid "$3"
ceph-osd -i 0 -f &
radosgw-admin user create --uid=tablelog --display-name=tablelog --access-key={ACCESS_KEY} --secret-key={SECRET_KEY}
exec radosgw -n client.admin -f
"""
"""Monitor, one OSD, gateway: all in the process group of the gateway, and ended with it."""

# The monitor's mode must be said: RGW wants a secure one, which doesn't exist without authentication.
_CONF = """[global]
fsid = {fsid}
mon_host = v2:127.0.0.1:{mon_port}
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
ms_bind_port_min = 20000
ms_bind_port_max = 32000
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_mon_client_mode = crc
admin_socket =
keyring = {home}/keyring
log_file =
run_dir = {home}/data
mon_data = {home}/data/mon
osd_data = {home}/data/osd
rgw_data = {home}/data/rgw
mon_data_avail_warn = 1
mon_data_avail_crit = 1
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 1
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
osd_objectstore = memstore
memstore_device_bytes = 1073741824
plugin_dir = {libraries}/ceph
erasure_code_dir = {libraries}/ceph/erasure-code
compression_dir = {libraries}/ceph/compressor
osd_class_dir = {libraries}/rados-classes
rgw_frontends = beast endpoint=127.0.0.1:{port}
"""


class Ceph(S3Server):
    """One RGW over a cluster whose one OSD keeps its objects in memory."""

    name: ClassVar[str] = "ceph"
    optional: ClassVar[bool] = True
    start_seconds: ClassVar[float] = 180.0

    @classmethod
    def install(cls) -> Path:
        return install.installed("ceph-16", _unpack)

    def command(self) -> list[str]:
        mon_port, fsid = process.free_port(), str(uuid.uuid4())
        for directory in ("mon", "osd"):
            (self.data / directory).mkdir()
        conf = _CONF.format(fsid=fsid, mon_port=mon_port, home=self.home, libraries=self._libraries(), port=self.port)
        (Path(self.home) / "ceph.conf").write_text(conf)
        return ["/bin/sh", "-c", _START, "sh", str(mon_port), fsid, str(uuid.uuid4())]

    def settings(self) -> dict[str, str]:
        programs, libraries = self.install() / "usr" / "bin", self._libraries()
        early = self.install() / "lib" / libraries.name
        return {
            "CEPH_CONF": f"{self.home}/ceph.conf",
            "LD_LIBRARY_PATH": f"{libraries}:{libraries}/ceph:{early}",
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.install() / "usr" / "lib" / "python3" / "dist-packages"),
        }

    def _libraries(self) -> Path:
        (found,) = (self.install() / "usr" / "lib").glob("*-linux-gnu")
        return found


def _unpack(directory: Path) -> None:
    packages = directory / "packages"
    packages.mkdir()
    install.run([install.tool("apt-get"), "download", *_needed()], directory=packages)
    for package in packages.iterdir():
        install.run(["dpkg-deb", "-x", str(package), str(directory)])
        package.unlink()
    packages.rmdir()


def _needed() -> set[str]:
    """Ceph's packages, and all that they need and the system hasn't."""
    plan = [install.tool("apt-get"), "install", "--simulate", "--no-install-recommends", *_PACKAGES]
    planned = subprocess.run(plan, capture_output=True, text=True, check=False).stdout
    if not re.search(r"^Inst radosgw \(16\.", planned, re.MULTILINE):
        raise install.CannotInstallError("can't be installed here: Debian's packages of Ceph 16 aren't on offer")
    return {*_PACKAGES, *re.findall(r"^Inst (\S+)", planned, re.MULTILINE)}
