/** What became of one call of report(). Only "queued" spends any of the privacy budget. */
export type Outcome =
  /** Randomized and waiting to be sent. */
  | "queued"
  /** The metric's reports for this epoch are out. */
  | "already_reported"
  /** A limit of the metric, or a cap on all of them, would be passed. */
  | "over_budget"
  /** In local mode: counted on this device, for its person alone; nothing is sent. */
  | "counted"
  /** Counted on this device, which reports once an epoch what follows from all its counts. */
  | "noted"
  /** The person allows less epsilon than any tier of the metric has. */
  | "declined"
  /** The metric asks a random part of all devices, and this one is not among them this epoch. */
  | "not_sampled"
  /** The metric asks on one day of each period, and today is not the one of this device. */
  | "not_its_day"
  /** The model asks each device in some rounds, and this is none of this one's, or none runs. */
  | "not_its_round"
  /** The example is held in memory until the state that its round learns by was fetched. */
  | "awaits_state"
  /** The operator has stopped the metric for a while, for all devices, by a signed notice. */
  | "stopped"
  /** Reporting is switched off. */
  | "disabled"
  /** More reports in a moment than are kept in memory. */
  | "overflowed"
  /** Nowhere on this device can it be written down what was spent, so nothing may leave. */
  | "no_state"
  /** The metric's last day is over. */
  | "expired"
  /** The bundle has no key for this epoch: it is older than its keys, or the clock is wrong. */
  | "no_key"
  /** The client was closed before. */
  | "closed"
  /** A programmer's mistake: the bundle has no such metric. Strict clients throw instead. */
  | "unknown_metric"
  /** A programmer's mistake: the metric has no such value. Strict clients throw instead. */
  | "not_a_value"
  /** A fault of hubbub's own: nothing was reported. Strict clients throw instead. */
  | "failed";
