"""Fuzzing: bytes that nobody honest sends, wherever bytes of strangers are read.

    make fuzz RUNS=100000                 every target, then every gRPC method
    make fuzz TARGETS="bundle submit" RUNS=1000000
    make fuzz ARGS=--survey               on past faults; each kind of them, with its shortest input

Decoders (decoders.py); a device's whole life over a damaged or hostile state (states.py); bundles
signed as they should be, of any content (bundles.py); answers of a hostile shuffler (shufflers.py)
and aggregator (aggregators.py, analysts.py); HTTP (http_input.py); gRPC over the wire (methods.py).

Inputs are mutated from examples and from the corpus; with atheris (libFuzzer) mutations are guided
by coverage. An exception that is none of the documented answers, an input that hangs, or memory
that grows past the limit, ends the run with the input in build/fuzz/.
"""
