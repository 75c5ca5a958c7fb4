/** Parts of a hubbub SDK. What each is, and what is not here, is in README.md. */
export {
  fromText,
  halfOf,
  keyAt,
  metricOf,
  openBundle,
  type Bundle,
  type Metric,
  type OpeningKey,
} from "./bundle.js";
export { epochAt, epochStart } from "./epochs.js";
export * from "./errors.js";
export { SystemBits, type BitSource } from "./mechanisms/bits.js";
export { GeneralizedRandomizedResponse } from "./mechanisms/grr.js";
export { MECHANISMS, type Mechanism, type Randomizer } from "./mechanisms/registry.js";
export { randomizedResponse } from "./mechanisms/rr.js";
export { uncountedReport } from "./report.js";
export { seal, SEAL_BYTES, sealInfo, type Kem } from "./sealing.js";
export {
  meaningOf,
  PATH,
  requestOf,
  resultsOf,
  TYPE,
  type Answer,
  type Result,
  type SealedReport,
} from "./submission.js";
