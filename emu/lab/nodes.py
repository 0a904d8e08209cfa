"""Mininet's view of a lab: its node, interface and link classes, on namespaces and veth pairs that we made."""

from __future__ import annotations

import importlib.util
import os
import sys
import types
import warnings
from collections.abc import Mapping
from subprocess import Popen
from typing import Any

from emu.lab.holder import Holder
from emu.topology import Kind, Topology

if importlib.util.find_spec("distutils") is None:
    # Mininet 2.3 asks the distutils that Python 3.12 dropped for a version comparison, for old Open vSwitches only.
    _version = types.ModuleType("distutils.version")
    _version.StrictVersion = str  # type: ignore[attr-defined]
    sys.modules.setdefault("distutils", types.ModuleType("distutils"))
    sys.modules.setdefault("distutils.version", _version)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Mininet's own: deprecated imports, escapes in plain strings
    from mininet.link import Intf, Link
    from mininet.net import Mininet as Mininet
    from mininet.node import Host, Node, Switch
    from mininet.topo import Topo


class _InHolder(Node):
    """A node whose namespaces a holder keeps; the shell that Mininet talks to starts when it is first talked to."""

    isSetup = True  # noqa: N815 - what Mininet would look for (ifconfig) is needed by `emu live` alone

    holder: Holder
    environment: dict[str, str]

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 - Mininet's name
        """Take the holder's place in Mininet's books; no shell yet."""
        if self.pid is None:
            self.holder = self.params.pop("holder")
            self.environment = self.params.pop("environment")
            self.pid = self.holder.pid
            return
        self.holder.check()
        self.inNamespace = False  # Mininet would make another namespace; the options lead into ours
        try:
            super().startShell(f"-cda{self.holder.pid}")
        finally:
            self.inNamespace = True
            self.pid = self.holder.pid

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:  # noqa: N802
        """As Mininet's, starting the shell if there is none."""
        if self.shell is None:
            self.startShell()
        super().sendCmd(*args, **kwargs)

    def cmd(self, *args: Any, **kwargs: Any) -> str:
        """As Mininet's, starting the shell if there is none; the answer."""
        if self.shell is None:
            self.startShell()
        return super().cmd(*args, **kwargs)

    def config(self, **params: Any) -> dict[str, Any]:  # type: ignore[override]
        """No addresses in virtual time, and `lo` stays down: nothing may speak unasked."""
        return {}

    def stop(self, deleteIntfs: bool = False) -> None:  # noqa: N803
        """End the shell; interfaces go with their namespaces."""
        self.terminate()

    def cleanup(self) -> None:
        """As Mininet's, and forget the shell's files."""
        if self.shell is not None:
            file = self.stdout.fileno()
            self.inToNode.pop(file, None)
            self.outToNode.pop(file, None)
        super().cleanup()

    def _popen(self, cmd: list[str], **params: Any) -> Popen[Any]:
        params.setdefault("env", {**os.environ, **self.environment})
        return Popen(cmd, **params)


class FabricHost(_InHolder, Host):
    """A host of the fabric."""


class FabricSwitch(_InHolder, Switch):
    """A switch of the fabric, in a namespace of its own; what forwards is the model."""

    def __init__(self, name: str, **params: Any) -> None:
        params["inNamespace"] = True  # Mininet passes its own idea: switches in the root namespace
        super().__init__(name, dpid="0", **params)

    def defaultDpid(self, dpid: str | None = None) -> str:  # noqa: N802
        """None: no OpenFlow here."""
        return "0"

    def start(self, controllers: list[Any]) -> None:
        """Nothing to start."""

    def connected(self) -> bool:
        """Whether it waits for no controller: always."""
        return True


class FabricIntf(Intf):
    """An interface that was set up with its veth pair."""

    def config(self, **params: Any) -> dict[str, Any]:  # type: ignore[override]
        """Nothing is left to configure."""
        return {}

    def delete(self) -> None:
        """It goes with its namespace."""


class FabricLink(Link):
    """A link that Mininet need not make: its veth pair is laid straight into both namespaces."""

    @classmethod
    def makeIntfPair(cls, *args: Any, **kwargs: Any) -> None:  # noqa: N802
        """Nothing to make."""

    def delete(self) -> None:
        """It goes with its namespaces."""


def fabric_net(topology: Topology, holders: Mapping[str, Holder], environment: Mapping[str, str]) -> Mininet:
    """Mininet's object for a topology whose namespaces are there and whose cables come; changes nothing by itself."""
    topo = Topo()
    for node in topology.nodes:
        add = topo.addHost if node.kind is Kind.HOST else topo.addSwitch
        add(node.name, holder=holders[node.name], environment=dict(environment))
    for link in topology.links:
        topo.addLink(link.a.node, link.b.node, link.a.number, link.b.number)
    Mininet.inited = True  # else it rewrites a dozen of the machine's sysctls, for good
    return Mininet(topo, host=FabricHost, switch=FabricSwitch, link=FabricLink, intf=FabricIntf, controller=None)
