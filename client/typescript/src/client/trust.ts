/**
 * Trust: whose bundles an app takes here, and what was promised under their names.
 *
 * The first operator is trusted, and who it hands over to. Another one needs the app's explicit word,
 * never the bundle's own. As client/hubbub/client/trust/bundles.py.
 */
import { signerOf, type Bundle } from "../catalog/bundle.js";
import { listed, number, own, table, text } from "../catalog/json.js";
import { BundleRefused } from "../errors.js";

/** operator: who signed the last bundle, in base64; before: who handed over, to it in the end. */
export interface Trust {
  readonly operator: string;
  readonly before: readonly string[];
  readonly serial: number;
  readonly promises: Readonly<Record<string, Promised>>;
  /** The transparency log that its bundles are in, as it was last believed; null for none. */
  readonly log: unknown;
}

/**
 * What one name means, and the least of each limit that was ever said of it; null of a name that was
 * retired before it was seen, and of the central limit where there is none.
 */
interface Promised {
  readonly digest: string;
  readonly definition: string | null;
  readonly epsilon: number | null;
  readonly reports: number | null;
  readonly lifetime: number | null;
  readonly central: number | null;
}

/** The trust that a document told. @throws TypeError it is none. */
export function loadTrust(thing: unknown): Trust {
  const told = table(thing);
  const promises = Object.entries(table(told["promises"])).map(([name, one]) => {
    const held = table(one);
    const figure = (field: string) => (held[field] === null ? null : number(held[field]));
    const promised: Promised = {
      digest: text(held["digest"]),
      definition: held["definition"] === null ? null : text(held["definition"]),
      epsilon: figure("epsilon"),
      reports: figure("reports"),
      lifetime: figure("lifetime"),
      central: figure("central"),
    };
    return [name, promised] as const;
  });
  return {
    operator: text(told["operator"]),
    before: listed(told["before"]).map(text),
    serial: number(told["serial"]),
    promises: Object.fromEntries(promises),
    log: told["log"] ?? null,
  };
}

/**
 * The trust once a bundle is taken, and whether its operator is another one.
 *
 * byWord: the app itself names an operator of the bundle's line.
 *
 * @throws BundleRefused another operator's, older than one before, or it takes more than one.
 */
export function admitted(
  known: Trust | null,
  bundle: Bundle,
  byWord: boolean,
): { trust: Trust; another: boolean } {
  const operator = signerOf(bundle);
  const before = bundle.line.slice(0, -1);
  const follows = known !== null && bundle.line.includes(known.operator);
  const another = known !== null && !follows;
  if (known?.before.includes(operator)) {
    throw new BundleRefused("the bundle is refused: its operator has handed over to another key");
  }
  if (another && !byWord) {
    throw new BundleRefused(
      `the bundle is refused: it is signed by ${operator}, not by ${known.operator}; if it is ` +
        "another operator on purpose, let the app name it: operator",
    );
  }
  if (!another && bundle.serial < (known?.serial ?? 0)) {
    throw new BundleRefused("the bundle is refused: a newer one was here before");
  }
  // PRIVACY: a bundle for one person would have to be in the log that everybody sees.
  const seen = another ? null : (known?.log ?? null);
  if (seen && !bundle.proof) {
    throw new BundleRefused("the bundle is in no log, and those before were");
  }
  const log = bundle.proof?.after(seen) ?? null;
  const promises = kept(another ? {} : (known?.promises ?? {}), bundle);
  const led = [...(another ? [] : (known?.before ?? [])), ...before];
  return {
    trust: { operator, before: [...new Set(led)], serial: bundle.serial, promises, log },
    another,
  };
}

/** All promises, old and new. */
function kept(known: Trust["promises"], bundle: Bundle): Trust["promises"] {
  const promises = new Map(Object.entries(known));
  const broken: string[] = [];
  for (const name of new Set([...Object.keys(bundle.history), ...bundle.metrics.keys()])) {
    const told = promisedBy(bundle, name);
    const before = promises.get(name);
    const how = before ? breaks(before, told) : "";
    if (how) broken.push(`metric "${name}": ${how}`);
    promises.set(name, before ? both(before, told) : told);
  }
  if (broken.length) {
    throw new BundleRefused(
      `the bundle takes more than this device was promised: ${broken.join("; ")}; keep what was ` +
        "promised, or give the metric a new name",
    );
  }
  return Object.fromEntries(promises);
}

/** digest: "" where the history has none of a metric. */
function promisedBy({ history, promised, metrics }: Bundle, name: string): Promised {
  const digest = text(own(history, name) ?? "");
  const metric = metrics.get(name);
  const retired = promised.get(name);
  if (retired) return { ...retired, digest, definition: null };
  return {
    digest,
    definition: metric?.definition ?? null,
    epsilon: metric?.streams[0].epsilon ?? null,
    reports: metric?.limits.reportsPerEpoch ?? null,
    lifetime: metric?.limits.lifetimeEpsilon ?? null,
    central: metric?.limits.lifetimeCentralEpsilon ?? null,
  };
}

/** How a later promise of the same name says more than one before; "" if it does not. */
function breaks(before: Promised, now: Promised): string {
  for (const figure of ["epsilon", "reports", "lifetime"] as const) {
    const [was, is] = [before[figure], now[figure]];
    if (was !== null && is !== null && is > was) return `${figure} raised from ${was} to ${is}`;
  }
  if (
    before.central !== null &&
    now.epsilon !== null &&
    !((now.central ?? Infinity) <= before.central)
  ) {
    return "lifetime_central_epsilon raised or taken away";
  }
  const differs =
    before.definition !== null && now.definition !== null && before.definition !== now.definition;
  const another = before.digest && now.digest && before.digest !== now.digest;
  return differs || another ? "its definition changed" : "";
}

/** Both, where neither breaks the other: the smaller limits. */
function both(one: Promised, other: Promised): Promised {
  const least = (figure: "epsilon" | "reports" | "lifetime" | "central") => {
    const smaller = Math.min(one[figure] ?? Infinity, other[figure] ?? Infinity);
    return smaller === Infinity ? null : smaller;
  };
  return {
    digest: one.digest || other.digest,
    definition: one.definition ?? other.definition,
    epsilon: least("epsilon"),
    reports: least("reports"),
    lifetime: least("lifetime"),
    central: least("central"),
  };
}
