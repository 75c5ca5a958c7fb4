/**
 * Trust: the operator whose bundles a device accepts, and the promises of its earlier bundles.
 *
 * The device trusts the first operator that it sees, and any operator to whom that one hands over.
 * It accepts another operator only if the app names that operator; a bundle cannot do so itself. As
 * client/hubbub/client/trust.py.
 */
import { listed, number, table, text } from "../catalog/json.js";

/**
 * What a device trusts. operator: the key, in base64, that signed the last bundle. before: the keys
 * of earlier operators, each of which handed over to the next one.
 */
export interface Trust {
  readonly operator: string;
  readonly before: readonly string[];
  readonly serial: number;
  readonly promises: Readonly<Record<string, Promised>>;
  /**
   * The last accepted state of the transparency log that contains the operator's bundles; null for
   * none.
   */
  readonly log: unknown;
}

/**
 * The promise under one metric name: its meaning, and the smallest value that any bundle gave for
 * each limit.
 *
 * A figure is null if the metric was retired before this device saw it; the central limit is also
 * null if the metric has none. digest: identifies the meaning; "" for a bundle without a history,
 * and in states that were written by clients that did not compute digests.
 */
export interface Promised {
  readonly digest: string;
  readonly epsilon: number | null;
  readonly reports: number | null;
  readonly lifetime: number | null;
  readonly central: number | null;
}

/**
 * Whether the device accepts an operator's bundles: the current operator's, and those of earlier
 * ones.
 */
export function isTrusted({ trust }: { readonly trust: Trust | null }, operator: string): boolean {
  return !trust || trust.operator === operator || trust.before.includes(operator);
}

/** The trust in a document. @throws TypeError the document is invalid. */
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
