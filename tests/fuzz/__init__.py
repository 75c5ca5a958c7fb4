"""Fuzzing: bytes that nobody honest sends, to every decoder and to every gRPC method.

    make fuzz RUNS=100000                 every decoder, then every method
    make fuzz TARGETS="bundle submit" RUNS=1000000

Inputs are mutated from examples (decoders.py, methods.py) and from the corpus; with atheris
(libFuzzer) mutations are guided by coverage. An exception that is not the decoder's own answer, or
memory that grows past the limit, ends the run with the input in build/fuzz/.
"""
