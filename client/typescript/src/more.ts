/**
 * What bundles may ask beyond a few listed values, in one piece: loaded where one does.
 *
 * In one, for each piece more would be cut along what it shares with the others. It begins with the
 * client, so that a page's first piece is not cut along what that shares with these.
 */
export { Client } from "./client/client.js";
export { breakdownOf, centralDaysOf, periodOf } from "./catalog/asking.js";
export { coderOf } from "./catalog/coding.js";
export { finderOf } from "./catalog/discovery.js";
export { dummiesOf } from "./catalog/dummies.js";
export { general } from "./catalog/general.js";
export { lineOf } from "./catalog/handovers.js";
export { openProof } from "./catalog/log/proof.js";
export { crowdCapOf } from "./catalog/crowd_cap.js";
export { partsOf } from "./catalog/parts.js";
export { cover, running, secondsToNext } from "./client/cover.js";
export { forgotten } from "./client/forgetting.js";
export { hear } from "./client/hearing.js";
export { heeded } from "./client/regaining.js";
export { memoOf } from "./client/memo.js";
export { purseOf } from "./client/purse.js";
export { view } from "./client/view.js";
export { askingIssuer } from "./transport/issuing.js";
export { relayTransport } from "./transport/relay.js";
export { MECHANISMS, mechanismNamed } from "./mechanisms/registry.js";
