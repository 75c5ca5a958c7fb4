"""Figures of the peers, as JSON lines; runs in an environment of its own, which has no hubbub.

Per mechanism and number of values, at epsilon 1: microseconds of one randomize, and reports a
second added up and estimated. Every peer is called as its own documentation does.
"""

import json
import random
import sys
import time
import warnings

import numpy as np

EPSILON = 1.0
SIZES = (16, 128, 1024)
CLIENTS = 300
SERVED = 2000


def _client(call):
    call(0)  # some compile at the first call
    start = time.perf_counter()
    for value in range(CLIENTS):
        call(value % 16)
    return (time.perf_counter() - start) / CLIENTS * 1e6


def _server(payloads, serve):
    serve(payloads[:50])
    start = time.perf_counter()
    serve(payloads)
    return len(payloads) / (time.perf_counter() - start)


def _print_figures(library, mechanism, categories, randomize, serve=None):
    microseconds = _client(randomize)
    document = {
        "library": library,
        "mechanism": mechanism,
        "categories": categories,
        "us": microseconds,
    }
    if serve:
        document["per_second"] = _server([randomize(v % 16) for v in range(SERVED)], serve)
    print(json.dumps(document), flush=True)


def _pure_ldp(d):
    from pure_ldp.core import generate_hash_funcs
    from pure_ldp.frequency_oracles.apple_cms import CMSClient, CMSServer
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.hadamard_response import (
        HadamardResponseClient,
        HadamardResponseServer,
    )
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    def index(value):
        return value

    def serving(make):
        def serve(payloads):
            server = make()
            server.aggregate_all(payloads)
            for value in range(d):
                server.estimate(value, suppress_warnings=True)

        return serve

    def add(name, client, make):
        _print_figures("pure-ldp", name, d, client.privatise, serving(make))

    add("grr", DEClient(EPSILON, d, index), lambda: DEServer(EPSILON, d, index))
    for name, optimal in (("unary.sue", False), ("unary.oue", True)):
        add(
            name,
            UEClient(EPSILON, d, use_oue=optimal, index_mapper=index),
            lambda optimal=optimal: UEServer(EPSILON, d, use_oue=optimal, index_mapper=index),
        )
    functions = HadamardResponseServer(EPSILON, d, index).get_hash_funcs()
    add(
        "hadamard",
        HadamardResponseClient(EPSILON, d, functions, index),
        lambda: HadamardResponseServer(EPSILON, d, index),
    )
    for name, hadamard in (("cms", False), ("hcms", True)):
        functions = generate_hash_funcs(64, d)
        add(
            name,
            CMSClient(EPSILON, functions, d, hadamard),
            lambda hadamard=hadamard: CMSServer(EPSILON, 64, d, hadamard),
        )


def _multi_freq(d):
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    library = "multi-freq-ldpy"
    _print_figures(
        library,
        "grr",
        d,
        lambda v: GRR_Client(v, d, EPSILON),
        lambda payloads: GRR_Aggregator_MI(payloads, d, EPSILON),
    )
    for name, optimal in (("unary.sue", False), ("unary.oue", True)):
        _print_figures(
            library,
            name,
            d,
            lambda v, optimal=optimal: UE_Client(v, d, EPSILON, optimal),
            lambda payloads, optimal=optimal: UE_Aggregator_MI(payloads, EPSILON, optimal),
        )
    _print_figures(
        library,
        "subset",
        d,
        lambda v: SS_Client(v, d, EPSILON),
        lambda payloads: SS_Aggregator_MI(payloads, d, EPSILON),
    )


def _opendp(d):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    symbols = [str(value) for value in range(d)]
    keep = np.exp(EPSILON) / (np.exp(EPSILON) + d - 1)
    grr = dp.m.make_randomized_response(symbols, prob=float(keep))
    _print_figures("opendp", "grr", d, lambda v: grr(symbols[v]))
    half = float(np.exp(EPSILON / 2) / (np.exp(EPSILON / 2) + 1))
    bits = dp.m.make_randomized_response_bitvec(
        dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=2 * (1 - half)
    )
    packed = [np.packbits(np.arange(d) == value) for value in range(16)]
    _print_figures("opendp", "unary.sue", d, lambda v: bits(packed[v].tobytes()))


def main():
    warnings.simplefilter("ignore")
    random.seed(1)
    for library in (_pure_ldp, _multi_freq, _opendp):
        for d in SIZES:
            try:
                library(d)
            except Exception as error:  # a peer that fails is a figure too
                print(f"{library.__name__}, {d} values: {error!r}", file=sys.stderr)


if __name__ == "__main__":
    main()
