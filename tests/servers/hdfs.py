"""HDFS 3.5: Hadoop's own mini cluster, one JVM for NameNode and DataNode. Built through Py4J, it needs no compiler."""

import os
import re
from pathlib import Path
from typing import Any, ClassVar

from . import install
from .base import StorageServer

_GATEWAY = re.compile(r"^(\d+)\n(\S{32,})\n", re.MULTILINE)
"""What Py4J prints when its gateway listens: port and token."""


class HDFS(StorageServer):
    """One mini cluster. Its file system belongs to the user who started it."""

    name: ClassVar[str] = "hdfs"
    keeps_data: ClassVar[bool] = True

    @classmethod
    def install(cls) -> Path:
        return install.maven_jar("org.apache.hadoop", "hadoop-client-minicluster", "3.5.0")

    def command(self) -> list[str]:
        jars = f"{self.install()}{os.pathsep}{install.spark_jars_directory() / '*'}"
        options = ["-Xmx512m", f"-Djava.io.tmpdir={self.home}", "-Dhadoop.log.dir=" + self.home]
        return [install.java(), *options, "-cp", jars, "py4j.GatewayServer", "--enable-auth", "0"]

    def answers(self) -> bool:
        return self._gateway() is not None

    def prepare(self) -> None:
        """Build the cluster, on the port that is its own, with what the directory holds from before."""
        from py4j.java_gateway import GatewayParameters, JavaGateway

        found = self._gateway()
        assert found is not None
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(found[1]), auth_token=found[2]))
        hadoop = gateway.jvm.org.apache.hadoop
        conf = hadoop.conf.Configuration()
        conf.set("dfs.replication", "1")
        # Served only when every block is reported: 0.999 of few blocks, rounded down, would be none after a restart.
        conf.set("dfs.namenode.safemode.threshold-pct", "1.0f")
        conf.set("dfs.namenode.resource.du.reserved", "0")  # else it turns read-only whenever the disk looks full
        hadoop_home = gateway.jvm.java.io.File(str(self.data))
        new = not any(self.data.iterdir())
        builder = hadoop.hdfs.MiniDFSCluster.Builder(conf, hadoop_home).nameNodePort(self.port)
        builder.numDataNodes(1).format(new).build()
        gateway.shutdown()  # the cluster stays: its threads keep the JVM

    def _gateway(self) -> re.Match[str] | None:
        return _GATEWAY.search(self.log.read_text(errors="replace"))

    @property
    def endpoint(self) -> str:
        return f"hdfs://127.0.0.1:{self.port}"

    @property
    def root(self) -> str:
        return f"{self.endpoint}/tablelog"

    @property
    def conf(self) -> dict[str, str]:
        return {"fs.defaultFS": self.endpoint, "dfs.replication": "1"}

    @property
    def storage_options(self) -> dict[str, Any]:
        return {}

    @property
    def environment(self) -> dict[str, str]:
        return {}
