/**
 * Everything that a bundle may need beyond a few listed values, in one file that is loaded on
 * demand.
 *
 * It is one file because the bundler would split each further file along the modules that it shares
 * with the others. It imports the page's entry first, so that the page's first file is not split
 * for the same reason.
 */
export { open } from "./browser/open.js";
export { breakdownOf, centralDaysOf, periodOf } from "./catalog/periods_and_breakdowns.js";
export { coderOf } from "./catalog/value_codes.js";
export { finderOf } from "./catalog/discovery.js";
export { dummiesOf } from "./catalog/dummies.js";
export { experimentOf } from "./catalog/experiments.js";
export { general } from "./catalog/number_text.js";
export { lineOf } from "./catalog/handovers.js";
export { openProof } from "./catalog/log/proof.js";
export { crowdCapOf } from "./catalog/crowd_cap.js";
export { partsOf } from "./catalog/parts.js";
export { pastOf } from "./catalog/event_history_kinds.js";
export { arm, publicArm } from "./client/arms.js";
export { cover, running, secondsToNext } from "./client/epochs_to_cover.js";
export { forget } from "./client/forgetting.js";
export { withLimits } from "./client/person_limits.js";
export { hear } from "./client/notices.js";
export { mergedWithWitness } from "./client/witness_merge.js";
export { Local } from "./client/local.js";
export { memoOf } from "./client/memo.js";
export { note } from "./client/past_events.js";
export { tokenStoreOf } from "./client/token_store.js";
export { view } from "./client/ledger_view.js";
export { relayAndIssuer } from "./transport/relay_and_issuer.js";
export { MECHANISMS, mechanismNamed } from "./mechanisms/registry.js";
