/** What a person allows a report to say, kept. Loaded where a person says so. */
import { BadParameter } from "../errors.js";
import type { Device } from "./device.js";

/**
 * The device once a person allows a report so much epsilon; null for what the metric asks. maxLocal: as
 * much where it is undefined.
 *
 * @throws BadParameter neither null nor a number from 0 on.
 */
export function preferring(
  preference: number | null,
  maxLocal: number | null = preference,
): (device: Device) => Device {
  for (const epsilon of [preference, maxLocal]) {
    if (epsilon !== null && !(Number.isFinite(epsilon) && epsilon >= 0)) {
      throw new BadParameter("prefer(): give 0 or more, in nats, or null for any");
    }
  }
  return (device) => ({ ...device, consent: { ...device.consent, preference, maxLocal } });
}
