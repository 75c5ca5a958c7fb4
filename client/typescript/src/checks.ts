/**
 * The checks of a bundle when it is opened, and what uses the network, in one file. Every page loads
 * it after the first file and before it reports. It begins with the client, as more.ts does.
 */
export { Client } from "./client/client.js";
export { digestsOf, spelledOf } from "./catalog/definition.js";
export {
  fitsKind,
  promisedOf,
  refuseAmbiguous,
  refuseExperiments,
  refuseLargeBatch,
  refuseMetric,
  refuseNoise,
  refuseRest,
} from "./catalog/bundle_checks.js";
export { admitted } from "./client/admission.js";
export { mistakeOf } from "./client/value_hints.js";
export { checked, named, refuseOptions, refuseUnfit, secondsOf } from "./client/options.js";
export { storagelessClient, started } from "./client/storageless_client.js";
export { contentOf, fetchPost, fetchTransport } from "./browser/fetching.js";
