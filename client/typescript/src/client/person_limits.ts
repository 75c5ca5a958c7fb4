/** Stores how much epsilon a person allows a report. Loaded when a person sets it. */
import { BadParameter } from "../errors.js";
import type { Device } from "./device.js";
import { refuseOptions } from "./options.js";

/**
 * The device after a person sets the maximum epsilon of a report; null or Infinity for the metric's
 * own. options.maxLocal: the same if undefined.
 *
 * @throws BadParameter neither null nor a number from 0 on.
 */
export function withLimits(
  maxEpsilon: number | null,
  options?: { readonly maxLocal?: number | null },
): (device: Device) => Device {
  refuseOptions("prefer()", "maxLocal", options);
  const { maxLocal = maxEpsilon } = options ?? {};
  const limits = {
    preference: limit("maxEpsilon", maxEpsilon),
    maxLocal: limit("maxLocal", maxLocal),
  };
  return (device) => ({ ...device, consent: { ...device.consent, ...limits } });
}

function limit(name: string, epsilon: number | null): number | null {
  if (epsilon === null || epsilon === Infinity) return null;
  if (Number.isFinite(epsilon) && epsilon >= 0) return epsilon;
  throw new BadParameter(`prefer(): ${name}: give 0 or more, in nats, or null for any`);
}
