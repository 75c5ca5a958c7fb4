/**
 * What bundles may ask beyond a few listed values, in one piece: loaded where one does.
 *
 * In one, for each piece more would be cut along what it shares with the others.
 */
export { breakdownOf, periodOf } from "./catalog/asking.js";
export { coderOf } from "./catalog/coding.js";
export { dummiesOf } from "./catalog/dummies.js";
export { lineOf } from "./catalog/handovers.js";
export { openProof } from "./catalog/log/proof.js";
export { follows, openNotice } from "./catalog/notice.js";
export { muWithin } from "./catalog/gaussian.js";
export { partsOf } from "./catalog/parts.js";
export { cover, running, secondsToNext } from "./client/cover.js";
export { forgotten } from "./client/forgetting.js";
export { memoOf } from "./client/memo.js";
export { view } from "./client/view.js";
export { hadamardResponse } from "./mechanisms/hadamard.js";
export { longGrr, longHash, longUnary } from "./mechanisms/longitudinal.js";
export { bucketFlips, oneBitMean, piecewiseMean, squareWave } from "./mechanisms/numbers.js";
export { pairedParts } from "./mechanisms/pairs.js";
export { privSet } from "./mechanisms/privset.js";
export { projectiveResponse } from "./mechanisms/projective.js";
export { basicRappor, rappor } from "./mechanisms/rappor.js";
export { countMeanSketch, hadamardSketch, localHashing } from "./mechanisms/sketch.js";
export { relayTransport } from "./transport/relay.js";
export { subsetSelection } from "./mechanisms/subset.js";
export { prefixTree } from "./mechanisms/tree.js";
export { optimizedUnary, symmetricUnary } from "./mechanisms/unary.js";
