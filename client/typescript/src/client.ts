/** The exports that browsers and Node share. */
export type { Public } from "./catalog/metric.js";
export type { Features, Label, Value } from "./catalog/values.js";
export type { Client, Options } from "./client/client.js";
export type { Account } from "./transport/issuer.js";
export type { Outcome } from "./client/outcome.js";
export type { LedgerView, MetricView, PayloadView } from "./client/ledger_view.js";
export {
  BadParameter,
  BundleRefused,
  HubbubError,
  NotLoaded,
  StateUnusable,
  UnknownMetric,
  ValueOutOfDomain,
} from "./errors.js";
