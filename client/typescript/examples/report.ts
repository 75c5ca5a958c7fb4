/**
 * One report from Node: report BUNDLE SHUFFLER FOLDER METRIC VALUE
 *
 * SHUFFLER is an address as https://HOST:PORT, FOLDER where this device keeps what it said.
 */
import { open } from "../src/node.js";

const [bundle, shuffler, folder, metric, value] = process.argv.slice(2);
if (!bundle || !shuffler || !folder || !metric || !value) {
  throw new Error("write: report BUNDLE SHUFFLER FOLDER METRIC VALUE");
}
const client = await open({ bundle, shuffler, folder });
console.log(client.report(metric, value));
console.log((await client.close()) ? "nothing waits" : "it waits for the next start");
