/**
 * Reads the signed bundle: its operator, the metrics and the opening keys.
 *
 * A bundle is two lines of JSON: the signature, and the signed content. In bundles that name a
 * transparency log, a third line proves that the log contains the two.
 */
import { BundleRefused, NotLoaded, UnknownMetric } from "../errors.js";
import { load } from "../loading.js";
import type { Bytes } from "../mechanisms/packing.js";
import { capsOf, type Caps } from "./caps.js";
import { fromText, linesOf } from "./encoding.js";
import { keyFrom, signedLines } from "./signed_lines.js";
import { listed, number, ownValue, table, text, type Table } from "./json.js";
import type { LogKey, LogProof } from "./log/log.js";
import { metricFrom, type Metric } from "./metric.js";
import type { TokenIssuer } from "../transport/issuer.js";
import type { Kem } from "../transport/sealing.js";

/** The longest bundle. */
export const MAX_BYTES = 64 << 20;
const X_WING_BYTES = 1216;
const DEVELOPMENT_IDS = 2 ** 31; // key ids of development begin here, those of production at 1

/**
 * A public key that reports are sealed to, for epochs that start in [start, end) seconds. xWing:
 * the second public key, for metrics that are sealed by X-Wing.
 */
export interface OpeningKey {
  readonly id: number;
  readonly start: number;
  readonly end: number;
  readonly publicKey: Bytes;
  readonly xWing?: Bytes;
}

/** Who runs the shuffler and the aggregator, as a text for people that the operator signed. */
export interface Runs {
  readonly shuffler: string;
  readonly aggregator: string;
}

/** The promise of a name: the smallest value of each limit; null if there is no central limit. */
export interface Figures {
  readonly epsilon: number;
  readonly reports: number;
  readonly lifetime: number;
  readonly central: number | null;
}

/** The content that an operator signed. */
export interface Bundle {
  /** HOST:PORT for gRPC, or https://HOST:PORT. */
  readonly shuffler: string;
  /** PEM of the root certificates for shufflers; null for the system's. */
  readonly roots: string | null;
  readonly keys: readonly OpeningKey[];
  readonly metrics: ReadonlyMap<string, Metric>;
  /** Metrics that this version cannot report, and why. */
  readonly unknown: ReadonlyMap<string, UnknownMetric>;
  /** Whether every device sends the same number of reports of every stream, fillers included. */
  readonly cover: boolean;
  readonly caps: Caps;
  /** The digest of each definition, for every name ever used. */
  readonly history: Table;
  /** The promises of retired names. */
  readonly promised: ReadonlyMap<string, Figures>;
  /** Grows from bundle to bundle. */
  readonly serial: number;
  /** The operator's keys in base64, oldest first; the last one signed it. */
  readonly line: readonly string[];
  /** Whether the bundle is of a development installation, which protects nobody. */
  readonly development: boolean;
  readonly runs: Runs | null;
  /** The shuffler's key for requests through a relay (RFC 9458). */
  readonly gateway: Bytes | null;
  /** The issuer of the tokens of reports; null if reports need none. */
  readonly tokens: TokenIssuer | null;
  /** The transparency log that the bundle names. */
  readonly log: LogKey | null;
  /** The proof that the log contains this bundle. */
  readonly proof: LogProof | null;
}

/**
 * The bundle in a file's content. operator: the operator's key in base64 that the app pins. That
 * key, or a key that it handed over to, must have signed the bundle; null accepts any signer.
 *
 * @throws BundleRefused malformed, altered, or another operator's.
 * @throws NotLoaded a part of the SDK that the bundle needs cannot be loaded.
 */
export async function openBundle(bundleBytes: Bytes, operator: string | null): Promise<Bundle> {
  try {
    if (bundleBytes.length > MAX_BYTES)
      throw new BundleRefused(`it is larger than ${MAX_BYTES >> 20} MiB`);
    const [head, body, proof, ...extraLines] = linesOf(bundleBytes);
    if (!head || !body || extraLines.length)
      throw new BundleRefused("it must have two or three lines");
    const { body: document, line } = await signedLines("hubbub/1 bundle\n", head, body);
    if (operator !== null && !line.includes(operator)) {
      throw new BundleRefused("another operator signed it");
    }
    const { spelledOf } = await load("checks");
    const bundle = await bundleOf(document, spelledOf(body), line);
    const { log } = bundle;
    if (!proof && !log) return bundle;
    if (!proof || !log) throw new BundleRefused("its log or proof is missing");
    const { openProof } = await load("more");
    const content = bundleBytes.slice(0, head.length + body.length + 2);
    return { ...bundle, proof: await openProof(proof, content, log) };
  } catch (error) {
    if (error instanceof NotLoaded) throw error;
    // The bundle is public, so the parser's message may be shown.
    const reason =
      error instanceof BundleRefused
        ? error.message
        : `it is no bundle, or a newer one (${String(error)})`;
    throw new BundleRefused(`the bundle is refused: ${reason}; ship it as the operator built it`, {
      cause: error,
    });
  }
}

/**
 * A metric by its name.
 *
 * PRIVACY: a text that is no metric's name may be a value in the wrong place, so the error never
 * shows it.
 *
 * @throws UnknownMetric there is no such metric, or this version cannot report it.
 */
export function metricOf(
  bundle: Bundle,
  name: string,
  kind: "metric" | "model" = "metric",
): Metric {
  const metric = bundle.metrics.get(name);
  if (metric) return metric;
  const message = `the bundle has no ${kind} of this name`;
  throw bundle.unknown.get(name) ?? new UnknownMetric(message, kind);
}

/** The key that signed the bundle, in base64. */
export function signerOf({ line }: Bundle): string {
  return line[line.length - 1] ?? "";
}

/** The opening key for an epoch that starts at this second, if the bundle has one. */
export function keyAt(keys: readonly OpeningKey[], start: number): OpeningKey | undefined {
  return keys.find((key) => key.start <= start && start < key.end);
}

/** The public key that reports of this KEM are sealed to; undefined if there is none. */
export function halfOf(key: OpeningKey | undefined, kem: Kem): Bytes | undefined {
  return kem === "x-wing" ? key?.xWing : key?.publicKey;
}

async function bundleOf(body: Table, pythonBody: Table, line: readonly string[]): Promise<Bundle> {
  // 2: a list of values has grown.
  const { version } = body;
  // 3: reports need tokens.
  if (version !== 1 && version !== 2 && version !== 3)
    throw new BundleRefused("it needs a newer hubbub");
  const { promisedOf, refuseExperiments, refuseRest } = await load("checks");
  refuseRest(body);
  const development = body["development"] === true;
  const keys = listed(body["keys"]).map((key) => openingKey(table(key)));
  if (development && !(keys.length && keys.every(({ id }) => id >= DEVELOPMENT_IDS)))
    throw new BundleRefused("its keys are for production");
  const history = table(body["history"]);
  const spellings = table(pythonBody["metrics"]);
  const metrics = new Map<string, Metric>();
  const unknownMetrics = new Map<string, UnknownMetric>();
  for (const [name, entry] of Object.entries(table(body["metrics"]))) {
    try {
      const spelling = table(ownValue(spellings, name));
      const metric = await metricFrom(name, table(entry), development, spelling);
      for (const [stream, digest] of metric.digests) {
        if ((ownValue(history, stream) ?? digest) !== digest)
          throw new BundleRefused(`metric "${name}" differs from the history`);
      }
      metrics.set(name, metric);
    } catch (error) {
      if (!(error instanceof UnknownMetric)) throw error;
      unknownMetrics.set(name, error);
    }
  }
  refuseExperiments(metrics);
  return {
    shuffler: text(body["shuffler"]),
    roots: body["roots"] === null ? null : text(body["roots"]),
    keys,
    metrics,
    unknown: unknownMetrics,
    cover: body["cover"] === true,
    caps: await capsOf(body["caps"]),
    history,
    promised: promisedOf(body),
    serial: number(body["serial"] ?? 0),
    line,
    development,
    runs: body["runs"] === undefined ? null : runsOf(table(body["runs"])),
    log: body["log"] === undefined ? null : logOf(table(body["log"])),
    proof: null,
    tokens: body["tokens"] === undefined ? null : issuerOf(table(body["tokens"])),
    gateway: body["gateway"] === undefined ? null : fromText(text(body["gateway"])),
  };
}

function runsOf({ shuffler, aggregator }: Table): Runs {
  return { shuffler: text(shuffler), aggregator: text(aggregator) };
}

function issuerOf({ issuer, key }: Table): TokenIssuer {
  return { issuer: text(issuer), publicKey: keyFrom(text(key)) };
}

function logOf({ name, key }: Table): LogKey {
  return { name: text(name), key: text(key) };
}

function openingKey(key: Table): OpeningKey {
  const publicKey = keyFrom(text(key["public"]));
  const xWingKey = key["x_wing"];
  return {
    ...{
      id: number(key["id"]),
      start: number(key["start"]),
      end: number(key["end"]),
      publicKey,
    },
    ...(xWingKey === undefined ? {} : { xWing: keyFrom(text(xWingKey), X_WING_BYTES) }),
  };
}
