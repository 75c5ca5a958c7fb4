/**
 * Trust: whose bundles an app takes here, and what was promised under their names.
 *
 * The first operator is trusted, and who it hands over to. Another one needs the app's explicit word,
 * never the bundle's own. As client/hubbub/client/trust/bundles.py.
 */
import { listed, number, table, text } from "../catalog/json.js";

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
 * retired before it was seen, and of the central limit where there is none. digest: "" in states of
 * clients that computed none, of a bundle without a history.
 */
export interface Promised {
  readonly digest: string;
  readonly epsilon: number | null;
  readonly reports: number | null;
  readonly lifetime: number | null;
  readonly central: number | null;
}

/** Whether an operator's bundle is still taken, or was before a handover: no other's came since. */
export function isTrusted({ trust }: { readonly trust: Trust | null }, operator: string): boolean {
  return !trust || trust.operator === operator || trust.before.includes(operator);
}

/** The trust that a document told. @throws TypeError it is none. */
export function loadTrust(value: unknown): Trust {
  const trust = table(value);
  const promises = Object.entries(table(trust["promises"])).map(([name, promise]) => {
    const record = table(promise);
    const figure = (field: string) => (record[field] === null ? null : number(record[field]));
    const promised: Promised = {
      ...(record as object),
      digest: text(record["digest"]),
      epsilon: figure("epsilon"),
      reports: figure("reports"),
      lifetime: figure("lifetime"),
      central: figure("central"),
    };
    return [name, promised] as const;
  });
  return {
    ...(trust as object),
    operator: text(trust["operator"]),
    before: listed(trust["before"]).map(text),
    serial: number(trust["serial"]),
    promises: Object.fromEntries(promises),
    log: trust["log"] ?? null,
  };
}
