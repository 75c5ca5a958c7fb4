"""`hubbub catalog build`: the signed bundle that apps ship, and what the services read."""

from hubbub.bundles.encoding import to_text
from hubbub.cli.commands.catalog import BuildOptions
from hubbub.cli.terminal.catalog_reading import kept_mechanisms, read_aloud
from hubbub.cli.terminal.catalog_warnings import obsolete_metrics
from hubbub.cli.terminal.output import explain, say
from hubbub.errors import BadParameter
from hubbub.errors.message_words import several
from hubbub.installation.keys_and_bundles import OPERATORS, build_bundle
from hubbub.programs.text_files import read_text
from hubbub.signing.log.log_files import LOG


def build(options: BuildOptions) -> None:
    """Reads the catalog, signs the bundle, and writes it with the stream table."""
    try:
        roots = read_text(options.roots) if options.roots else None
    except ValueError as error:
        raise BadParameter(f"--roots {error}; give the authority's ca.pem") from error
    catalog = read_aloud(options.catalog)
    for sentence in obsolete_metrics(catalog):
        explain(sentence)
    operators = options.operator_out or options.out.with_name(OPERATORS)
    bundle = build_bundle(
        catalog,
        options.keys,
        out=options.out,
        operators=operators,
        streams=options.streams,
        previous=options.previous,
        roots=roots,
        log=options.log,
    )
    metrics, keys = several(len(bundle.metrics), "metric"), several(len(bundle.keys), "key")
    say(f"{options.out}: {metrics}, {keys}, for the apps")
    for metric in bundle.metrics.values():
        if metric.grown:
            say(f"{metric.name}: has {len(metric.values or ())} values since {metric.stream}")
    for line in kept_mechanisms(catalog, bundle.metrics.values()):
        say(line)
    handovers = f"; key handovers: {len(bundle.handovers)}" if bundle.handovers else ""
    say(f"{options.out}: serial {bundle.serial}, signed by {to_text(bundle.operator)}{handovers}")
    if bundle.log:
        folder = options.log or options.out.with_name(LOG)
        say(f"{folder}: the log contains it; serve the folder at https://{bundle.log.name}/")
        audit = f"hubbub log audit https://{bundle.log.name}/ --bundle {options.out}"
        say(f"{folder}: check it with: {audit}")
    say(f"{operators}: the same with candidates and alerts, for the aggregator")
    say(f"{options.streams}: for the shuffler")
