/**
 * One report from Node: report BUNDLE OPERATOR SHUFFLER METRIC VALUE
 *
 * OPERATOR is the pinned key in base64, SHUFFLER an address as https://HOST:PORT.
 */
import { readFile } from "node:fs/promises";

import { fromText, openBundle, SystemBits, uncountedReport } from "../src/index.js";
import { submit } from "../src/node/shuffler.js";

const [path, operator, address, metric, value] = process.argv.slice(2);
if (!path || !operator || !address || !metric || !value) {
  throw new Error("write: report BUNDLE OPERATOR SHUFFLER METRIC VALUE");
}
const bundle = await openBundle(new Uint8Array(await readFile(path)), fromText(operator));
const report = await uncountedReport(bundle, metric, value, Date.now() / 1000, new SystemBits());
const [result] = await submit([report], { address, roots: bundle.roots, timeoutSeconds: 60 });
console.log(result ?? "acknowledged");
