"""Clients and servers of the gRPC services that services.proto declares."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import grpc

from hubbub.wire.v1 import services_pb2


def stub(service: str, channel: Any) -> Any:
    """A client of a service on a channel, blocking or asyncio, with a callable for each method."""
    return SimpleNamespace(
        **{
            name: channel.unary_unary(path, request.SerializeToString, response.FromString)
            for name, path, request, response in _methods(service)
        }
    )


def add_service(service: str, methods: Any, server: Any) -> None:
    """Serve a service on a server by an object's methods; those it lacks are UNIMPLEMENTED."""
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            getattr(methods, name), request.FromString, response.SerializeToString
        )
        for name, _, request, response in _methods(service)
        if hasattr(methods, name)
    }
    full_name = services_pb2.DESCRIPTOR.services_by_name[service].full_name
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(full_name, handlers),))


def _methods(service: str) -> Iterator[tuple[str, str, Any, Any]]:
    """Each method's name, its path, and the classes of its request and response."""
    descriptor = services_pb2.DESCRIPTOR.services_by_name[service]
    for method in descriptor.methods:
        path = f"/{descriptor.full_name}/{method.name}"
        request, response = method.input_type, method.output_type
        yield (
            method.name,
            path,
            *(getattr(services_pb2, message.name) for message in (request, response)),
        )
