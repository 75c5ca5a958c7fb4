/**
 * Accepts or refuses a bundle, and records its promises. As client/hubbub/client/trust.py.
 */
import { signerOf, type Bundle } from "../catalog/bundle.js";
import { ownValue, text } from "../catalog/json.js";
import { BundleRefused } from "../errors.js";
import type { Promised, Trust } from "./trust.js";

/**
 * The trust after a bundle is accepted, and whether its operator is a new one.
 *
 * byWord: the app itself names an operator of the bundle's line.
 *
 * @throws BundleRefused it is another operator's, older than an accepted bundle, or allows more
 * than an accepted bundle.
 */
export function admitted(
  trust: Trust | null,
  bundle: Bundle,
  byWord: boolean,
): { trust: Trust; another: boolean } {
  const operator = signerOf(bundle);
  const previousKeys = bundle.line.slice(0, -1);
  const follows = trust !== null && bundle.line.includes(trust.operator);
  const another = trust !== null && !follows;
  if (trust?.before.includes(operator)) {
    throw new BundleRefused("the bundle is refused: its operator has handed over to another key");
  }
  if (another && !byWord) {
    throw new BundleRefused(
      `the bundle is refused: it is signed by ${operator}, not by ${trust.operator}; if it is ` +
        "another operator on purpose, let the app name it: operator",
    );
  }
  if (!another && bundle.serial < (trust?.serial ?? 0)) {
    throw new BundleRefused("the bundle is refused: this device had a newer one before");
  }
  // PRIVACY: this forces a bundle for a single person into the log, which everybody sees.
  const tree = another ? null : (trust?.log ?? null);
  if (tree && !bundle.proof) {
    throw new BundleRefused("the bundle is in no log, but the earlier ones were");
  }
  const log = bundle.proof?.after(tree) ?? null;
  const promises = promisesAfter(another ? {} : (trust?.promises ?? {}), bundle);
  const led = [...(another ? [] : (trust?.before ?? [])), ...previousKeys];
  const update = { operator, before: [...new Set(led)], serial: bundle.serial, promises, log };
  return { trust: { ...(another ? {} : trust), ...update }, another };
}

/** The earlier promises together with the bundle's. */
function promisesAfter(earlierPromises: Trust["promises"], bundle: Bundle): Trust["promises"] {
  const promises = new Map(Object.entries(earlierPromises));
  const broken: string[] = [];
  for (const name of new Set([...Object.keys(bundle.history), ...bundle.metrics.keys()])) {
    const promise = promisedBy(bundle, name);
    const earlier = promises.get(name);
    const violation = earlier ? breaks(earlier, promise) : "";
    if (violation) broken.push(`metric "${name}": ${violation}`);
    promises.set(name, earlier ? combined(earlier, promise) : promise);
  }
  if (broken.length) {
    throw new BundleRefused(
      `the bundle allows more than this device was promised: ${broken.join("; ")}; keep what was ` +
        "promised, or give the metric a new name",
    );
  }
  return Object.fromEntries(promises);
}

function promisedBy({ history, promised, metrics }: Bundle, name: string): Promised {
  const metric = metrics.get(name);
  const digest = metric?.digests.get(name) ?? text(ownValue(history, name) ?? "");
  const retired = promised.get(name);
  if (retired) return { ...retired, digest };
  return {
    digest,
    epsilon: metric?.streams[0].epsilon ?? null,
    reports: metric?.limits.reportsPerEpoch ?? null,
    lifetime: metric?.limits.lifetimeEpsilon ?? null,
    central: metric?.limits.lifetimeCentralEpsilon ?? null,
  };
}

/** How a later promise of the same name allows more than an earlier one; "" if it does not. */
function breaks(earlier: Promised, later: Promised): string {
  for (const figure of ["epsilon", "reports", "lifetime"] as const) {
    const [earlierLimit, laterLimit] = [earlier[figure], later[figure]];
    if (earlierLimit !== null && laterLimit !== null && laterLimit > earlierLimit)
      return `${figure} raised from ${earlierLimit} to ${laterLimit}`;
  }
  if (
    earlier.central !== null &&
    later.epsilon !== null &&
    !((later.central ?? Infinity) <= earlier.central)
  ) {
    return "lifetime_central_epsilon raised or taken away";
  }
  const differs = earlier.digest && later.digest && earlier.digest !== later.digest;
  return differs ? "its definition changed" : "";
}

/** Two compatible promises combined: the smaller limits. */
function combined(first: Promised, second: Promised): Promised {
  const smallerLimit = (figure: "epsilon" | "reports" | "lifetime" | "central") => {
    const smaller = Math.min(first[figure] ?? Infinity, second[figure] ?? Infinity);
    return smaller === Infinity ? null : smaller;
  };
  return {
    ...first,
    digest: first.digest || second.digest,
    epsilon: smallerLimit("epsilon"),
    reports: smallerLimit("reports"),
    lifetime: smallerLimit("lifetime"),
    central: smallerLimit("central"),
  };
}
