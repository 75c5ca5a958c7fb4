/** What became of one call of report(). "queued" spends privacy budget, and "noted" may later. */
export type Outcome =
  /** Randomized and waiting to be sent. */
  | "queued"
  /** The metric's reports for this epoch are used up. */
  | "already_reported"
  /** The report would exceed a limit of the metric, or a cap on all metrics. */
  | "over_budget"
  /** In local mode: counted on this device, for its person alone; nothing is sent. */
  | "counted"
  /** Counted on this device; the one report of an epoch, of all its counts, spends budget. */
  | "noted"
  /** The person allows less epsilon than every tier of the metric has. */
  | "declined"
  /** The metric samples devices, and this device is not selected in this epoch. */
  | "not_sampled"
  /** The metric asks on one day of each period, and today is not this device's day. */
  | "not_its_day"
  /**
   * The model asks each device in some rounds, and this is not one of this device's rounds, or no
   * round runs.
   */
  | "not_its_round"
  /** The example waits in memory until the state of its round has been fetched. */
  | "awaits_state"
  /** The operator has stopped the metric for a while, for all devices, by a signed notice. */
  | "stopped"
  /** Reporting is switched off. */
  | "disabled"
  /** Too many reports at once for the memory queue. */
  | "overflowed"
  /** This device cannot store what was spent, so nothing may leave. */
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
