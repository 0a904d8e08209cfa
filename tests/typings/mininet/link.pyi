from typing import Any

from mininet.node import Node

class Intf:
    node: Node | None
    name: str
    link: Link | None
    mac: str | None
    ip: str | None
    prefixLen: int | str | None
    params: dict[str, Any]
    def __init__(
        self,
        name: str,
        node: Node | None = None,
        port: int | None = None,
        link: Link | None = None,
        mac: str | None = None,
        **params: Any,
    ) -> None: ...
    def cmd(self, *args: Any, **kwargs: Any) -> str: ...
    def ifconfig(self, *args: Any) -> str: ...
    def setIP(self, ipstr: str, prefixLen: int | None = None) -> str: ...
    def setMAC(self, macstr: str) -> str: ...
    def updateIP(self) -> str | None: ...
    def updateMAC(self) -> str | None: ...
    def updateAddr(self) -> tuple[str | None, str | None]: ...
    def IP(self) -> str | None: ...
    def MAC(self) -> str | None: ...
    def isUp(self, setUp: bool = False) -> bool: ...
    def rename(self, newname: str) -> str: ...
    def setParam(self, results: dict[str, Any], method: str, **param: Any) -> Any: ...
    def config(
        self,
        mac: str | None = None,
        ip: str | None = None,
        ifconfig: str | None = None,
        up: bool = True,
        **_params: Any,
    ) -> dict[str, Any]: ...
    def delete(self) -> None: ...
    def status(self) -> str: ...

class Link:
    intf1: Any  # an Intf, until delete() makes it None
    intf2: Any
    fast: bool
    def __init__(
        self,
        node1: Node,
        node2: Node,
        port1: int | None = None,
        port2: int | None = None,
        intfName1: str | None = None,
        intfName2: str | None = None,
        addr1: str | None = None,
        addr2: str | None = None,
        intf: type[Intf] = ...,
        cls1: type[Intf] | None = None,
        cls2: type[Intf] | None = None,
        params1: dict[str, Any] | None = None,
        params2: dict[str, Any] | None = None,
        fast: bool = True,
        **params: Any,
    ) -> None: ...
    def intfName(self, node: Node, n: int) -> str: ...
    @classmethod
    def makeIntfPair(
        cls,
        intfname1: str,
        intfname2: str,
        addr1: str | None = None,
        addr2: str | None = None,
        node1: Node | None = None,
        node2: Node | None = None,
        deleteIntfs: bool = True,
    ) -> Any: ...
    def delete(self) -> None: ...
    def stop(self) -> None: ...
    def status(self) -> str: ...
