"""Asks one service whether it serves: `python -m hubbub.runtime.probe HOST:PORT --tls FOLDER ROLE`.

For the health checks of containers and orchestrators, most of which cannot show a certificate.
"""

import argparse
import sys
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from hubbub.errors import HubbubError
from hubbub.errors.address_checks import check_address, proxy_options
from hubbub.runtime.tls import TlsFolder, check_plain


def main() -> int:
    """Returns 0 if the service serves; otherwise prints the reason and returns 1."""
    parser = argparse.ArgumentParser(prog="python -m hubbub.runtime.probe", description=__doc__)
    parser.add_argument("address", help="HOST:PORT of any of its gRPC listeners")
    shown = "certificates, and the role whose certificate to present; without: plain text"
    parser.add_argument("--tls", nargs=2, metavar=("FOLDER", "ROLE"), help=shown)
    parser.add_argument("--of", help="role that must answer (the same as is shown)")
    parser.add_argument("--seconds", type=float, default=5.0, help="to wait (%(default)s)")
    arguments = parser.parse_args()
    try:
        check_address("the address", arguments.address)
        options = proxy_options(arguments.address)
        if arguments.tls:
            folder, role = arguments.tls
            credentials = TlsFolder(Path(folder), role).channel_credentials(arguments.of or role)
            channel = grpc.secure_channel(arguments.address, credentials, options)
        else:
            check_plain(arguments.address)
            channel = grpc.insecure_channel(arguments.address, options)
        with channel:
            question, seconds = health_pb2.HealthCheckRequest(), arguments.seconds
            answer = health_pb2_grpc.HealthStub(channel).Check(question, timeout=seconds)
    except grpc.RpcError as error:
        return _say_failure(f"{arguments.address}: {error.code().name}: {error.details()}")
    except HubbubError as error:
        return _say_failure(str(error))
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        return _say_failure(f"{arguments.address} reports that it does not serve")
    return 0


def _say_failure(problem: str) -> int:
    print(problem, file=sys.stderr)  # noqa: T201 for whoever reads the log of the check
    return 1


if __name__ == "__main__":
    sys.exit(main())
