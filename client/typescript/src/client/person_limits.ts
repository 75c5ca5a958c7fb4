/** Stores how much epsilon a person allows a report. Loaded when a person sets it. */
import { BadParameter } from "../errors.js";
import type { Device } from "./device.js";

/**
 * The device after a person sets the maximum epsilon of a report; null for the metric's own.
 * maxLocal: the same if undefined.
 *
 * @throws BadParameter neither null nor a number from 0 on.
 */
export function withLimits(
  preference: number | null,
  maxLocal: number | null = preference,
): (device: Device) => Device {
  for (const [name, epsilon] of Object.entries({ maxEpsilon: preference, maxLocal })) {
    if (epsilon !== null && !(Number.isFinite(epsilon) && epsilon >= 0)) {
      throw new BadParameter(`prefer(): ${name}: give 0 or more, in nats, or null for any`);
    }
  }
  return (device) => ({ ...device, consent: { ...device.consent, preference, maxLocal } });
}
