/**
 * Reports that a device computes from its past: as client/hubbub/client/event_count_reports.py.
 * Events are counted in memory, stored in the device's document, and reported once an epoch.
 */
import { epochAt, epochStart, graceSeconds } from "../catalog/epochs.js";
import type { Metric } from "../catalog/metric.js";
import { withSubject } from "../catalog/values.js";
import { accountOf, accountsOf } from "./account.js";
import { publicArm } from "./arms.js";
import type { Device, Events } from "./device.js";
import type { Outcome } from "./outcome.js";
import type { Reporter } from "./reporter.js";

// By client: the events that are not stored yet, oldest first, and how many of them are being
// stored.
const notedEvents = new WeakMap<Reporter, { events: NotedEvent[]; keeping: number }>();
const MOST_HELD = 10_000;
const NO_EVENTS: Events = { generation: -1, counts: [] };

/** An event, under a number of consent. */
interface NotedEvent {
  readonly generation: number;
  readonly metric: string;
  readonly epoch: number;
  readonly event: string;
}

/**
 * Counts an event for a later report, unless no report may follow. cellOf: returns the cell of a
 * breakdown for this device.
 *
 * @throws ValueOutOfDomain the value is not an event of the metric.
 */
export function note(
  reporter: Reporter,
  metric: Metric,
  value: unknown,
  cellOf: () => string,
): Outcome {
  const past = metric.past;
  let event = withSubject(`metric "${metric.name}"`, () => past?.event(value) ?? "");
  if (reporter.local) return reporter.local.add(metric.name, event);
  if (!past?.counts) event = cellOf();
  // PRIVACY: an event is not stored unless a report will use it.
  const outcome = reporter.say(metric, 0, "", null);
  if (outcome !== "awaits_state") return outcome;
  const buffer = notedEvents.get(reporter) ?? { events: [], keeping: 0 };
  if (buffer.events.length >= MOST_HELD) return "overflowed";
  const epoch = epochAt(reporter.now(), metric.epoch);
  const { generation } = reporter.device.consent;
  buffer.events.push({ generation, metric: metric.name, epoch, event });
  notedEvents.set(reporter, buffer);
  return "noted";
}

/**
 * The change that moves counted events into the device's document and drops those that are no
 * longer useful.
 */
export function keeping(reporter: Reporter): ((device: Device) => Device) | null {
  if (![...reporter.bundle.metrics.values()].some(({ past }) => past)) return null;
  const buffer = notedEvents.get(reporter) ?? { events: [], keeping: 0 };
  buffer.keeping = buffer.events.length;
  const bufferedEvents = buffer.events.slice();
  return (device) => {
    const { generation } = device.consent;
    const storedEvents = eventsOf(device);
    let { counts } = storedEvents;
    for (const event of bufferedEvents)
      if (event.generation === generation) counts = withEvent(counts, event);
    counts = counts.filter(([name, epoch]) => isUseful(reporter, device, name, epoch));
    const isSame = !bufferedEvents.length && counts.length === storedEvents.counts.length;
    return isSame ? device : { ...device, events: { generation, counts } };
  };
}

/** Makes the reports that follow from stored events, after the counted events were stored. */
export function reportPast(reporter: Reporter): void {
  const { device } = reporter;
  const buffer = notedEvents.get(reporter);
  buffer?.events.splice(0, buffer.keeping);
  const epochs = new Map<string, [Metric, number, Record<string, number>]>();
  for (const [name, epoch, event, times] of eventsOf(device).counts) {
    const metric = reporter.bundle.metrics.get(name);
    if (!metric || !isUseful(reporter, device, name, epoch)) continue;
    const [, , events] = epochs.get(`${epoch} ${name}`) ?? [metric, epoch, {}];
    epochs.set(`${epoch} ${name}`, [metric, epoch, { ...events, [event]: times }]);
  }
  const inOrder = [...epochs.values()].sort(
    ([first, firstEpoch], [second, secondEpoch]) =>
      firstEpoch - secondEpoch || (first.name < second.name ? -1 : 1),
  );
  for (const [metric, epoch, events] of inOrder) {
    const { past } = metric;
    if (!past || (past.counts && epoch >= epochAt(reporter.now(), metric.epoch))) continue;
    const [event = ""] = Object.keys(events);
    const account = accountOf(accountsOf(reporter.device, metric), metric);
    const reportedEpochs = Object.entries(account.epochs).filter(([, reports]) => reports);
    const otherEpochs = reportedEpochs
      .map(([epochText]) => Number(epochText))
      .filter((otherEpoch) => otherEpoch !== epoch);
    const { breakdown, experiment } = metric;
    const armCell = experiment && breakdown?.cell(publicArm(reporter, experiment));
    const cell = past.counts ? (armCell ?? "") : event;
    reporter.say(metric, past.computed(epoch, events, otherEpochs), cell, epoch);
  }
}

/** The stored events of the current consent; an opt-out revokes earlier ones. */
function eventsOf({ events, consent }: Device): Events {
  return events?.generation === consent.generation ? events : NO_EVENTS;
}

/** The counts with one more of an event. */
function withEvent(
  counts: Events["counts"],
  { metric, epoch, event }: NotedEvent,
): Events["counts"] {
  const isSameEvent = (count: Events["counts"][number]) =>
    count[0] === metric && count[1] === epoch && count[2] === event;
  const times = counts.find(isSameEvent)?.[3] ?? 0;
  return [...counts.filter((count) => !isSameEvent(count)), [metric, epoch, event, times + 1]];
}

/**
 * Whether a report may still follow: the metric is requested here, and the epoch is neither too
 * late nor already reported.
 */
function isUseful(reporter: Reporter, device: Device, name: string, epoch: number): boolean {
  const metric = reporter.bundle.metrics.get(name);
  if (!metric?.past) return false;
  const deadline = epochStart(epoch + 1, metric.epoch) + graceSeconds(metric.epoch);
  const account = accountOf(accountsOf(device, metric), metric);
  return reporter.now() < deadline && epoch > account.floor && !account.epochs[epoch];
}
